"""The first page: every dead-letter queue, its letters, growth and most frequent cause."""

from __future__ import annotations

import re
from pathlib import Path
from threading import Event

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from tests.web.conftest import ADDRESS, Opened, dead

import redelivery
from redelivery.broker import EmbeddedBroker
from redelivery.model.errors import ConfigError
from redelivery.web import mount
from redelivery.web.application import console
from redelivery.web.asked import ConsoleSettings
from redelivery.web.calls import Calls
from redelivery.web.sites import BrokerSite


def test_each_queue_is_there_with_its_letters_and_its_cause(broker: EmbeddedBroker, opened: Opened) -> None:
    dead(broker, "ValueError: no price", "ValueError: no price", "KeyError: sku")
    dead(broker, "TimeoutError: card", queue="bills.DLQ")
    page = opened().get("/").text
    assert page.index(">ActiveMQ.DLQ</a>") < page.index(">bills.DLQ</a>")
    assert re.search(r'data-label="Letters">3<', page)
    assert "ValueError: no price" in page
    assert "TimeoutError: card" in page


@pytest.mark.parametrize("protocol", ["stomp", "amqp"])
def test_it_is_the_same_over_the_wire(broker: EmbeddedBroker, opened: Opened, protocol: str) -> None:
    dead(broker, "ValueError: no price")
    page = opened(getattr(broker, f"{protocol}_url")).get("/").text
    assert re.search(r'data-label="Letters">1<', page)
    assert "ValueError: no price" in page


def test_growth_is_counted_from_the_first_look(broker: EmbeddedBroker, opened: Opened) -> None:
    dead(broker, "ValueError: a")
    client = opened()
    assert "first look" in client.get("/").text
    dead(broker, "ValueError: a", "ValueError: a")
    assert ">+2<" in client.get("/").text
    assert "+2" in client.get("/").text


def test_a_queue_may_be_named(broker: EmbeddedBroker, opened: Opened) -> None:
    with redelivery.connect(broker.vm_url) as connection, connection.session() as session:
        session.producer("kept").send("x")
    assert ">kept<" not in opened().get("/").text
    assert ">kept</a>" in opened(queues=(redelivery.Queue("kept"),)).get("/").text


def test_a_broker_that_is_down_is_said(opened: Opened) -> None:
    answer = opened("stomp://user:hunter2secret@127.0.0.1:1").get("/")
    assert answer.status_code == 502
    assert "cannot be reached" in answer.text
    assert "hunter2secret" not in answer.text
    assert 'hx-trigger="every 20s"' in answer.text  # it looks again by itself


def test_a_slow_broker_is_said_and_does_not_take_the_threads_of_others(tmp_path: Path) -> None:
    begun, release = Event(), Event()

    def connect() -> redelivery.Connection:
        begun.set()
        release.wait(30)
        raise redelivery.ConnectError("gone")

    site = BrokerSite("slow", "stomp://slow:61613", connect, "stomp://slow:61613", {})
    app = console(ConsoleSettings({"slow": site}, tmp_path, tmp_path), calls=Calls(at_once=1, seconds=0.05))
    client = TestClient(app, base_url=ADDRESS)
    slow = client.get("/slow/")
    assert (slow.status_code, "does not answer in time" in slow.text) == (504, True)
    assert begun.is_set()
    busy = client.get("/slow/")
    assert (busy.status_code, "is busy" in busy.text) == (503, True)
    release.set()
    for _ in range(200):
        if (answer := client.get("/slow/")).status_code != 503:
            break
    assert answer.status_code in (502, 504)


@pytest.mark.parametrize("path", ["/redelivery", "/ops/letters"])
def test_it_is_mounted_into_an_application(broker: EmbeddedBroker, path: str) -> None:
    dead(broker, "ValueError: a")
    app = Starlette()
    mount(app, broker.vm_url, path=path)
    client = TestClient(app, base_url=ADDRESS)
    page = client.get(f"{path}/")
    assert (page.status_code, page.url.path) == (200, f"{path}/console/")
    own = [each for each in re.findall(r'(?:src|href|action|hx-get)="([^"#]+)', page.text)]
    assert own
    assert [each for each in own if not each.startswith(f"{path}/")] == []
    assert client.get(f"{path}/static/style.css").status_code == 200
    assert TestClient(app, base_url="http://evil.example").get(f"{path}/").status_code == 421


def test_an_application_says_its_own_names(broker: EmbeddedBroker) -> None:
    app = Starlette()
    mount(app, [broker.vm_url, broker.stomp_url], hosts=["shop.example"])
    page = TestClient(app, base_url="https://shop.example").get("/redelivery/")
    assert page.status_code == 200
    assert page.text.count("aria-current") == 2


@pytest.mark.parametrize("path", ["", "/", "console", "/console/"])
def test_a_path_that_is_none_is_refused(path: str) -> None:
    with pytest.raises(ConfigError, match="path="):
        mount(Starlette(), "vm://x", path=path)
