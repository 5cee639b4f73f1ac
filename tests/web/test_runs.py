"""Replay, move, edit, delete and export: what was shown is done to the letters that were shown, and to no others."""

from __future__ import annotations

import json
import re
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.conformance.foreign import Foreign, section, string
from tests.run import forms
from tests.web.conftest import Opened, dead
from tests.web.forms import form, submit

import redelivery
from redelivery.broker import EmbeddedBroker
from redelivery.policies import read

DLQ = "ActiveMQ.DLQ"


def preview(client: TestClient, command: str, **fields: str) -> Any:
    return client.get("/console/preview", params={"queue": DLQ, "command": command, **fields})


def bodies(broker: EmbeddedBroker, queue: str) -> list[Any]:
    return [each.body for each in broker.messages(queue)]


def group_of(client: TestClient, words: str) -> str:
    page = client.get("/console/groups", params={"queue": DLQ}).text
    found = re.search(r"group=(\w+)\">[^<]*" + re.escape(words), page)
    assert found is not None
    return found[1]


@pytest.fixture(params=["stomp"] if forms.brief() else ["vm", "stomp", "amqp"])
def client(request: pytest.FixtureRequest, broker: EmbeddedBroker, opened: Opened) -> TestClient:
    dead(broker, *["ValueError: no price"] * 3, "KeyError: sku", "KeyError: sku")
    return opened(getattr(broker, f"{request.param}_url"), allow_writes=True)


def test_a_group_is_replayed(client: TestClient, broker: EmbeddedBroker, tmp_path: Path) -> None:
    page = preview(client, "replay", group=group_of(client, "no price")).text
    assert "Replay 3 letters?" in page
    assert "<strong>orders</strong>: 3" in page
    done = submit(client, page, "run")
    assert "3 letters replayed" in done.text
    assert bodies(broker, "orders") == ['{"order": 0}', '{"order": 1}', '{"order": 2}']
    assert broker.queue_depth(DLQ) == 2
    (receipt,) = (tmp_path / "receipts").glob("*.jsonl")
    assert str(receipt) in done.text
    assert "The receipt holds" in client.get("/console/verify", params={"name": receipt.name}).text
    undone = submit(client, done.text, "undo")
    assert "3 letters put back" in undone.text
    assert (broker.queue_depth("orders"), broker.queue_depth(DLQ)) == (0, 5)


def test_what_comes_after_the_preview_stays(client: TestClient, broker: EmbeddedBroker) -> None:
    page = preview(client, "purge").text
    assert "Delete 5 letters?" in page
    dead(broker, "ValueError: no price", body="late")
    assert "5 letters deleted" in submit(client, page, "run").text
    assert bodies(broker, DLQ) == ["late"]


def test_what_was_taken_meanwhile_is_not_missed(client: TestClient, broker: EmbeddedBroker) -> None:
    page = preview(client, "replay").text
    with redelivery.connect(broker.vm_url) as connection, connection.session() as session:
        assert session.consumer(DLQ).receive(timeout=2) is not None
    assert "4 letters replayed" in submit(client, page, "run").text
    again = submit(client, page, "run")
    assert (again.status_code, "somebody has taken them" in again.text) == (400, True)


def test_letters_without_ids_are_known_by_what_they_say(broker: EmbeddedBroker, opened: Opened) -> None:
    queue = "nameless.DLQ"
    foreign = Foreign("amqp", "embedded", broker.amqp_url)
    foreign.send(queue, *(section(0x77, string(each)) for each in (b"one", b"one", b"two")))
    client = opened(broker.amqp_url, allow_writes=True)
    page = client.get("/console/preview", params={"queue": queue, "command": "move", "to": "parking"}).text
    assert "Move 3 letters?" in page
    assert "3 without an id" in page
    foreign.send(queue, section(0x77, string(b"three")))
    assert "3 letters moved" in submit(client, page, "run").text
    assert (sorted(bodies(broker, "parking")), bodies(broker, queue)) == (["one", "one", "two"], ["three"])
    letter = client.get("/console/letter", params={"queue": queue, "place": "1"}).text
    assert "without an id" in letter


def test_letters_are_moved_with_all_that_they_say(client: TestClient, broker: EmbeddedBroker) -> None:
    page = preview(client, "move").text
    assert "Move letters" in page
    page = submit(client, page, "preview", to="parking").text
    assert "5 letters moved" in submit(client, page, "run").text
    assert [each.dead_letter is not None for each in broker.messages("parking")] == [True] * 5


def test_a_purge_is_undone_where_it_kept_them(client: TestClient, broker: EmbeddedBroker) -> None:
    done = submit(client, preview(client, "purge").text, "run")
    assert broker.queue_depth(DLQ) == 0
    assert "5 letters put back" in submit(client, done.text, "undo").text
    assert broker.queue_depth(DLQ) == 5
    lost = submit(client, preview(client, "purge").text, "run", keep=None)
    assert "/undo" not in lost.text


def test_a_group_is_edited(client: TestClient, broker: EmbeddedBroker) -> None:
    page = client.get("/console/edit", params={"queue": DLQ, "group": group_of(client, "no price")}).text
    page = submit(client, page, "edited", set="body.price=5\nproperties.tenant=eu").text
    assert re.search(r'class="add">\+.*price', page)
    assert "Edit and replay 3 letters?" in page
    assert "3 letters edited" in submit(client, page, "run").text
    assert [json.loads(each) for each in bodies(broker, "orders")] == [{"order": n, "price": 5} for n in range(3)]
    assert {each.dead_letter for each in broker.messages("orders")} == {None}


def test_one_letter_is_edited_as_it_was_shown(client: TestClient, broker: EmbeddedBroker) -> None:
    name = client.get("/console/letters", params={"queue": DLQ}).text
    id_ = re.search(r"id=([^\"&]+)", name)
    assert id_ is not None
    page = client.get(f"/console/edit?queue={DLQ}&id={id_[1]}").text
    record = json.loads(form(page, "edited").fields["record"])
    record["body"]["order"] = "\u202e<b>"
    page = submit(client, page, "edited", record=json.dumps(record)).text
    assert "\u202e" not in page
    assert "1 letter edited" in submit(client, page, "run").text
    assert [json.loads(each) for each in bodies(broker, "orders")] == [{"order": "\u202e<b>"}]


@pytest.mark.parametrize("record", ["{", "[]", "1", '{"body": 1}', "[" * 100_000])
def test_what_is_no_letter_is_refused(client: TestClient, broker: EmbeddedBroker, record: str) -> None:
    id_ = re.search(r"id=([^\"&]+)", client.get("/console/letters", params={"queue": DLQ}).text)
    assert id_ is not None
    page = client.get(f"/console/edit?queue={DLQ}&id={id_[1]}").text
    assert submit(client, page, "edited", record=record).status_code == 400
    assert broker.queue_depth(DLQ) == 5


def test_letters_are_exported_as_lines(client: TestClient) -> None:
    answer = client.get("/console/export", params={"queue": DLQ})
    lines = [json.loads(each) for each in answer.text.splitlines()]
    assert sorted(json.loads(each["body"])["order"] for each in lines) == [0, 1, 2, 3, 4]
    assert answer.headers["content-disposition"].startswith("attachment")
    assert client.get("/console/export", params={"queue": "none"}).status_code == 400


def ended(client: TestClient, started: Any) -> str:
    """The page of a run at its end."""
    for _ in range(400):
        page = client.get(str(started.url)).text
        if "hx-trigger" not in page:
            return str(page)
        sleep(0.05)
    raise AssertionError(page)


def test_a_canary_that_nobody_takes_ends_the_run(client: TestClient, broker: EmbeddedBroker) -> None:
    started = submit(client, preview(client, "replay").text, "run", canary="2", canary_wait="1")
    page = ended(client, started)
    assert "It has ended too soon" in page
    assert "nobody took 2 of 2" in page
    assert "2 letters had left before" in page
    assert broker.queue_depth(DLQ) == 3
    with redelivery.connect(broker.vm_url) as connection, connection.session() as session:
        session.consumer("orders").listen(lambda _: None)
        assert "3 letters more" in ended(client, submit(client, page, "resume"))
    assert (broker.queue_depth(DLQ), broker.queue_depth("orders")) == (0, 0)


def test_the_rest_follows_a_canary_that_was_handled(client: TestClient, broker: EmbeddedBroker) -> None:
    with redelivery.connect(broker.vm_url) as connection, connection.session() as session:
        session.consumer("orders").listen(lambda _: None)
        started = submit(client, preview(client, "replay").text, "run", canary="2", canary_wait="3")
        assert "5 letters replayed" in ended(client, started)
    assert (broker.queue_depth(DLQ), broker.queue_depth("orders")) == (0, 0)


def test_the_rules_of_a_file_say_what_will_become_of_them(
    broker: EmbeddedBroker, opened: Opened, tmp_path: Path
) -> None:
    file = tmp_path / "broker.xml"
    file.write_text(
        '<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core"><address-settings>'
        '<address-setting match="#">'
        "<dead-letter-address>DLQ</dead-letter-address><max-delivery-attempts>7</max-delivery-attempts>"
        "<redelivery-delay>1000</redelivery-delay></address-setting></address-settings></core></configuration>"
    )
    dead(broker, "ValueError: x")
    page = preview(opened(allow_writes=True, config=read(str(file))), "replay").text
    assert "If they fail again: each will be tried 7 times over 6 s, then be " in page


PATHS = ("preview?queue=a&command=replay", "edit?queue=a")


@pytest.mark.parametrize("path", PATHS)
def test_a_console_that_only_looks_has_no_form_for_it(broker: EmbeddedBroker, opened: Opened, path: str) -> None:
    dead(broker, "ValueError: x")
    client = opened()
    answer = client.get(f"/console/{path}")
    assert (answer.status_code, "--allow-writes" in answer.text) == (403, True)
    for page in ("groups", "letters"):
        text = client.get(f"/console/{page}", params={"queue": DLQ}).text
        assert re.findall(r"/preview|/edit|method=\"post\"", text) == []


@pytest.mark.parametrize("path", ["run", "undo", "resume", "edited"])
@pytest.mark.parametrize("allow_writes", [False, True])
def test_a_post_without_its_form_does_nothing(
    broker: EmbeddedBroker, opened: Opened, path: str, allow_writes: bool
) -> None:
    dead(broker, "ValueError: x")
    client = opened(allow_writes=allow_writes)
    client.get("/")
    data = {"queue": DLQ, "command": "purge", "ids": "[]", "name": "x"}
    assert client.post(f"/console/{path}", data=data).status_code == 403
    assert client.get(f"/console/{path}").status_code == 405
    assert broker.queue_depth(DLQ) == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"ids": ""},
        {"ids": "[]"},
        {"ids": "[1]"},
        {"ids": "{}"},
        {"ids": "x"},
        {"ids": "[" * 5000},
        {"command": "explode"},
        {"command": "edit"},
        {"canary": "0"},
        {"canary": "x"},
        {"to": DLQ},
        {"to": "bad name {}"},
        {"ids": '["ID:none"]'},
    ],
)
def test_a_form_that_was_changed_is_refused(broker: EmbeddedBroker, opened: Opened, fields: dict[str, str]) -> None:
    dead(broker, "ValueError: x")
    client = opened(allow_writes=True)
    answer = submit(client, preview(client, "replay").text, "run", **fields)
    assert answer.status_code == 400
    assert broker.queue_depth(DLQ) == 1


@pytest.mark.parametrize("name", ["../secret.jsonl", "..%2fsecret.jsonl", "/etc/passwd", "x.txt", ".jsonl", "a/b"])
def test_only_receipts_of_the_folder_are_shown(opened: Opened, tmp_path: Path, name: str) -> None:
    (tmp_path / "secret.jsonl").write_text("{}\n")
    (tmp_path / "receipts").mkdir()
    assert opened().get("/console/receipt", params={"name": name}).status_code == 400


def test_a_damaged_receipt_harms_no_list(opened: Opened, tmp_path: Path) -> None:
    folder = tmp_path / "receipts"
    folder.mkdir()
    for name, text in (
        ("a", "{"),
        ("b", "[]\n"),
        ("c", ""),
        ("d", '{"receipt": 1, "command": "<b>"}\n'),
        ("e", "\xff"),
    ):
        (folder / f"{name}.jsonl").write_text(text)
    page = opened().get("/console/receipts")
    assert (page.status_code, page.text.count("cannot be read"), "<b>" in page.text) == (200, 5, False)
    assert opened().get("/console/receipt?name=0.jsonl").status_code == 400
