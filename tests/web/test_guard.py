"""Who is let in, and what a browser may do with a page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.web.conftest import ADDRESS, Opened

from redelivery.model.errors import ConfigError
from redelivery.web.application import console
from redelivery.web.asked import ConsoleSettings
from redelivery.web.server import known_as
from redelivery.web.sites import sites_of

TOKEN = "0123456789abcdef-secret"  # noqa: S105  # of these tests


def log_in(client: TestClient, token: str) -> Any:
    page = client.get("/login").text
    found = re.search(r'name="csrf" value="(\w+)"', page)
    assert found is not None
    return client.post("/login", data={"csrf": found[1], "token": token}, follow_redirects=False).status_code


@pytest.mark.parametrize(
    "at", ["http://127.0.0.1:8161", "http://localhost:8161", "http://[::1]:8161", "http://LOCALHOST"]
)
def test_this_machine_is_known_by_its_own_names(opened: Opened, at: str) -> None:
    assert opened(at=at).get("/console/").status_code == 200


@pytest.mark.parametrize(
    "at", ["http://evil.example", "http://127.0.0.1.evil.example:8161", "http://10.0.0.1:8161", "http://localhost.evil"]
)
@pytest.mark.parametrize("path", ["/", "/console/", "/static/style.css", "/login"])
def test_another_name_is_refused_on_every_page(opened: Opened, at: str, path: str) -> None:
    answer = opened(at=at).get(path, follow_redirects=False)
    assert (answer.status_code, "set-cookie" in answer.headers) == (421, False)
    assert "--host" in answer.text


def test_no_name_at_all_is_refused(opened: Opened) -> None:
    assert opened().get("/console/", headers={"host": ""}).status_code == 421


def test_a_console_for_others_is_known_by_addresses_and_names_that_were_given(opened: Opened) -> None:
    hosts = known_as("0.0.0.0", ("ops.example",))  # noqa: S104
    for at, status in (("http://192.0.2.7", 200), ("http://ops.example", 200), ("http://evil.example", 421)):
        assert opened(at=at, hosts=hosts).get("/console/").status_code == status


@pytest.mark.parametrize(
    "path", ["/", "/console/", "/nobody/", "/static/style.css", "/static/none", "/login", "/a/b/c"]
)
def test_every_answer_says_what_a_browser_may_do(opened: Opened, path: str) -> None:
    headers = opened().get(path, follow_redirects=False).headers
    policy = headers["content-security-policy"].split("; ")
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "style-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert "server" not in headers


def test_a_page_has_no_script_and_no_style_of_its_own(opened: Opened) -> None:
    page = opened().get("/console/").text
    assert re.findall(r"<style|\sstyle=|\son\w+=|javascript:|<script(?![^>]*\ssrc=)", page) == []
    assert all(each.startswith("/") for each in re.findall(r'(?:src|href|action)="([^"#]*)', page) if each)


def test_without_the_token_there_is_nothing_to_see(opened: Opened) -> None:
    client = opened(token=TOKEN)
    answer = client.get("/console/", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    assert client.post("/console/do", data={}).status_code == 401
    assert log_in(client, TOKEN[:-1]) == 403
    assert client.get("/console/", follow_redirects=False).status_code == 303
    assert log_in(client, TOKEN) == 303
    assert client.get("/console/").status_code == 200


@pytest.mark.parametrize("name", ["login", "login.example", "static", "static.example"])
def test_no_name_of_a_broker_opens_a_page_without_the_token(tmp_path: Path, name: str) -> None:
    sites = sites_of([(f"vm://{name}", {})])
    client = TestClient(console(ConsoleSettings(sites, tmp_path, tmp_path), token=TOKEN), base_url=ADDRESS)
    for each in sites:
        assert each not in ("login", "static")
        answer = client.get(f"/{each}/", follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    for path in ("/login/", "/login/x", "/staticx/", "/static/../login.example/"):
        assert "letters" not in client.get(path, follow_redirects=False).text


def test_the_cookies_are_for_this_console_only(opened: Opened) -> None:
    client = opened(token=TOKEN)
    log_in(client, TOKEN)
    for cookie in client.cookies.jar:
        assert cookie.has_nonstandard_attr("HttpOnly")
        assert cookie.get_nonstandard_attr("SameSite") == "Strict"
        assert TOKEN not in str(cookie.value)


def test_a_program_sends_the_token_as_a_header(opened: Opened) -> None:
    client = opened(token=TOKEN)
    assert client.get("/console/", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert client.get("/console/", headers={"authorization": "Bearer x"}, follow_redirects=False).status_code == 303


def test_no_page_and_no_log_has_the_token(opened: Opened, caplog: pytest.LogCaptureFixture) -> None:
    client = opened(token=TOKEN)
    log_in(client, TOKEN[::-1])
    log_in(client, TOKEN)
    assert TOKEN not in client.get("/console/").text + caplog.text
    assert TOKEN[::-1] not in caplog.text


def test_a_short_token_is_refused(opened: Opened) -> None:
    with pytest.raises(ConfigError, match="16 or more"):
        opened(token="short")  # noqa: S106  # of this test


def test_a_form_of_another_page_is_refused(opened: Opened) -> None:
    client, other = opened(token=TOKEN), opened(token=TOKEN)
    foreign = re.search(r'name="csrf" value="(\w+)"', other.get("/login").text)
    assert foreign is not None
    client.get("/login")
    for data in ({"token": TOKEN}, {"token": TOKEN, "csrf": ""}, {"token": TOKEN, "csrf": foreign[1]}):
        assert client.post("/login", data=data, follow_redirects=False).status_code == 403
    for headers in ({"origin": "http://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}):
        assert client.post("/login", data={}, headers=headers).status_code == 403
    assert client.post("/login", json={"token": TOKEN}).status_code == 403
