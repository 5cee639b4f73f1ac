"""The first page: every dead-letter queue, its letters, growth and most frequent cause."""

from __future__ import annotations

import re
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.web.conftest import ADDRESS, Opened, dead

import redelivery
from redelivery.broker import EmbeddedBroker
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


@pytest.mark.parametrize(
    "url", ["{vm}", "{stomp}", "{amqp}", "failover:({amqp})", "failover:({stomp})?randomize=false"]
)
def test_the_embedded_broker_says_how_many_there_are(broker: EmbeddedBroker, opened: Opened, url: str) -> None:
    dead(broker, *["ValueError: a"] * 1201)
    dead(broker, *["ValueError: a"] * 2, queue="bills.DLQ")
    page = opened(url.format(vm=broker.vm_url, stomp=broker.stomp_url, amqp=broker.amqp_url)).get("/").text
    assert re.findall(r'data-label="Letters">([^<]*)<', page) == ["1\u202f201", "2"]
    assert "1\u202f203 letters on 2 queues" in page


def test_what_is_counted_is_browsed_once(
    broker: EmbeddedBroker, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page waits for each look: the letters that are counted tell their causes, too."""
    dead(broker, *["ValueError: no price"] * 30)
    dead(broker, "KeyError: sku", queue="parked")
    monkeypatch.setattr("redelivery.operate.doctor.inspect.is_embedded", lambda _: False)
    looks: list[str] = []
    browser = redelivery.Session.browser

    def counted(session: redelivery.Session, queue: redelivery.Destination | str, **given: Any) -> Any:
        looks.append(str(queue).removeprefix("queue://"))
        return browser(session, queue, **given)

    monkeypatch.setattr(redelivery.Session, "browser", counted)
    page = opened(broker.stomp_url, queues=(redelivery.Queue("parked"),)).get("/").text
    assert re.findall(r'data-label="Letters">([^<]*)<', page) == ["30", "1"]
    assert ("ValueError: no price" in page, "KeyError: sku" in page) == (True, True)
    assert sorted(looks) == ["ActiveMQ.DLQ", "parked"]


def test_what_is_counted_to_a_bound_says_so_and_what_is_below_it_does_not(
    broker: EmbeddedBroker, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As at a broker that does not say how many: the sum has no plus where each number is exact."""
    dead(broker, *["ValueError: a"] * 600)
    dead(broker, *["ValueError: a"] * 600, queue="bills.DLQ")
    monkeypatch.setattr("redelivery.operate.doctor.inspect.is_embedded", lambda _: False)
    client = opened(broker.stomp_url, queues=(redelivery.Queue("bills.DLQ"),))
    assert "1\u202f200 letters on 2 queues" in client.get("/").text
    dead(broker, *["ValueError: a"] * 600)
    page = client.get("/").text
    assert re.findall(r'data-label="Letters">([^<]*)<', page) == ["1\u202f000+", "600"]
    assert "1\u202f600+ letters on 2 queues" in page


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
