"""What raw clients see under Artemis' file: addresses, times to live, counts, windows; on the real broker too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from time import time
from typing import Any, Final

import pytest
from tests.broker.raw_stomp import Raw
from tests.differential.files import text_of
from tests.promises.real.started import ARTEMIS, running, setting

from redelivery.broker import EmbeddedBroker

pytest.importorskip("proton")
from tests.broker.amqp.amqp_client import MODIFIED, Peer

SETTINGS: Final = (
    setting("dead.#", dead_letter_address="DLA", max_delivery_attempts=2)
    + setting("least", min_expiry_delay=5000)
    + setting("most", max_expiry_delay=20000)
    + setting("given", expiry_delay=20000)
    + setting("never", no_expiry="true")
    + setting("endless.#", max_delivery_attempts=-1)
)
ADDRESSES: Final = """
<address name="DLA"><anycast><queue name="letters"/></anycast></address>
<address name="orders"><anycast><queue name="ordersQueue"/></anycast></address>
<address name="news"><multicast><queue name="news.all"/></multicast></address>
"""
PORTS: Final = {"amqp": 1, "stomp": 2, "openwire": 3, "http": 4}
ANYCAST: Final = {"subscription-type": "ANYCAST"}


class Urls:
    def __init__(self, stomp: str | None, amqp: str | None, patience: float) -> None:
        assert stomp is not None
        assert amqp is not None
        self.stomp, self.amqp, self.patience = stomp, amqp, patience

    def taken(self, client: Raw) -> int:
        """How many messages come without an acknowledgement."""
        client.socket.settimeout(self.patience)
        number = 0
        try:
            while client.take() is not None:
                number += 1
        except TimeoutError:
            client.socket.settimeout(20)
        return number


def text(host: str, ports: Any) -> str:
    usual = text_of("artemis", host, ports).replace("</address-settings>", f"{SETTINGS}</address-settings>")
    return usual.replace("<addresses>", f"<addresses>{ADDRESSES}")


@pytest.fixture(scope="module", params=["embedded", pytest.param("real", marks=[pytest.mark.long_form])])
def urls(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Urls]:
    with ExitStack() as stack:
        if request.param == "real":
            broker = stack.enter_context(running(ARTEMIS, lambda site: text(site.host, site.ports)))
            stomp, amqp = (f"{each}://{broker.host}:{broker.ports[each]}" for each in ("stomp", "amqp"))
            yield Urls(stomp, amqp, 0.5)
            return
        file: Path = tmp_path_factory.mktemp("artemis") / "broker.xml"
        file.write_text(text("h", PORTS), encoding="utf-8")
        embedded = stack.enter_context(EmbeddedBroker("shown", config=file, stomp_port=0, amqp_port=0))
        yield Urls(embedded.stomp_url, embedded.amqp_url, 0.1)


@pytest.mark.parametrize(
    ("read", "sent", "kind", "shown"),
    [
        ("orders::ordersQueue", "orders", "ANYCAST", "orders"),
        ("orders::ordersQueue", "orders::ordersQueue", "ANYCAST", "orders::ordersQueue"),
        ("orders::ordersQueue", "orders::ordersQueue", None, "orders::ordersQueue"),
        ("news::news.all", "news", "MULTICAST", "news"),
        ("fresh::own", "fresh::own", None, "fresh::own"),
        ("same::same", "same", None, "same"),
    ],
)
def test_a_message_shows_the_name_that_it_was_sent_to(
    urls: Urls, read: str, sent: str, kind: str | None, shown: str
) -> None:
    with Raw(urls.stomp) as client:
        client.subscribe(read)
        client.ok("SEND", b"1", destination=sent, **({} if kind is None else {"destination-type": kind}))
        frame = client.next("MESSAGE")
        assert frame.headers["destination"] == shown
        client.ok("ACK", id=frame.headers["ack"])


@pytest.mark.parametrize("protocol", ["stomp", "amqp"])
@pytest.mark.parametrize("sender", ["stomp", "amqp"])
def test_a_dead_letter_shows_the_address_that_its_queue_has(urls: Urls, sender: str, protocol: str) -> None:
    queue = f"dead.{sender}.{protocol}"
    with Peer(urls.amqp) as client:
        if sender == "amqp":
            client.send(client.sender(queue, "queue"), {"body": "1", "durable": True})
        else:
            with Raw(urls.stomp) as stomp:
                stomp.ok("SEND", b"1", destination=queue, **{"destination-type": "ANYCAST"})
        client.receiver(queue, "queue")
        client.reject(client.one()[0], "amqp:internal-error", "no")
        client.quiet()
    if protocol == "amqp":
        with Peer(urls.amqp) as client:
            client.receiver("DLA::letters")
            delivery, message = client.one()
            assert (message.address, message.ttl, message.expiry_time) == ("DLA", 0, 0)
            client.settle(delivery, 0x24)
            client.quiet()
        return
    with Raw(urls.stomp) as stomp:
        stomp.subscribe("DLA::letters", **ANYCAST)
        frame = stomp.next("MESSAGE")
        assert (frame.headers["destination"], frame.headers["_AMQ_ORIG_ADDRESS"]) == ("DLA", queue)
        stomp.ok("ACK", id=frame.headers["ack"])


@pytest.mark.parametrize(
    ("queue", "ttl", "left", "expires"),
    [
        ("plain", 60, 60, 0),
        ("least", 60, 60, 0),
        ("least", 1, 0, 5),
        ("least", 0, 0, 5),
        ("most", 5, 5, 0),
        ("most", 60, 0, 20),
        ("most", 0, 0, 20),
        ("given", 60, 60, 0),
        ("given", 0, 0, 20),
        ("never", 60, 0, 0),
    ],
)
def test_a_time_to_live_is_shown_as_it_was_sent_unless_the_settings_change_it(
    urls: Urls, queue: str, ttl: int, left: int, expires: int
) -> None:
    began = time()
    with Peer(urls.amqp) as client:
        link = client.sender(queue, "queue")
        client.send(link, {"body": "1", **({"ttl": ttl} if ttl else {})})
        client.receiver(queue, "queue")
        delivery, message = client.one()
        client.settle(delivery, 0x24)
        client.quiet()
    assert message.ttl == left
    assert message.expiry_time == (pytest.approx(began + expires, abs=3) if expires else 0)
    assert message.address == (None if left else queue)


def test_a_browser_sees_the_count_of_the_last_delivery(urls: Urls) -> None:
    def browsed() -> int:
        with Peer(urls.amqp) as other:
            other.receiver("endless.b", "queue", browse=True)
            return int(other.one()[1].delivery_count)

    with Peer(urls.amqp) as client:
        client.send(client.sender("endless.b", "queue"), {"body": "1", "durable": True})
        assert browsed() == 0
        link = client.receiver("endless.b", "queue", credit=1)
        for failed in range(3):
            delivery, message = client.one()
            assert message.delivery_count == failed
            client.settle(delivery, MODIFIED, failed=True)
            client.quiet()
            assert browsed() == failed
            link.flow(1)
            client.flush()
        client.settle(client.one()[0], 0x24)
        client.quiet()


@pytest.mark.parametrize(
    ("window", "ack", "got"),
    [
        ({}, "client-individual", 4),  # 10 KiB
        ({"consumer-window-size": "1"}, "client-individual", 1),
        ({"consumer-window-size": "0"}, "client-individual", 1),
        ({"consumer-window-size": "6000"}, "client-individual", 2),
        ({"consumer-window-size": "6000"}, "client", 2),
        ({"consumer-window-size": "-1"}, "client-individual", 15),
        ({"consumer-window-size": "-5"}, "client-individual", 0),
        ({"activemq.prefetchSize": "1"}, "client-individual", 1),
        ({}, "auto", 15),
        ({"consumer-window-size": "1"}, "auto", 1),  # what is acknowledged as it is written makes no room
    ],
)
def test_a_window_over_stomp_is_bytes(urls: Urls, window: dict[str, str], ack: str, got: int) -> None:
    with Raw(urls.stomp) as client, Raw(urls.stomp) as other:
        client.ok("SUBSCRIBE", destination="win", id="s", ack=ack, **ANYCAST, **window)
        for _ in range(15):
            other.ok("SEND", b"x" * 3000, destination="win", **{"destination-type": "ANYCAST"})
        assert urls.taken(client) == got
        client.ok("UNSUBSCRIBE", id="s")
        client.ok("SUBSCRIBE", destination="win", id="rest", ack="auto", **ANYCAST)
        urls.taken(client)


@pytest.mark.parametrize("window", ["x", "", "99999999999", "1.5"])
def test_a_window_that_is_no_number_is_an_error(urls: Urls, window: str) -> None:
    with Raw(urls.stomp) as client:
        answer = client.call("SUBSCRIBE", destination="win", id="s", **{"consumer-window-size": window})
        assert answer.command == "ERROR"
        assert f'For input string "{window}"' in answer.headers["message"].replace(": ", " ")


@pytest.mark.parametrize(
    "header", ["durable-subscription-name", "durable-subscriber-name", "activemq.subscriptionName"]
)
def test_a_durable_subscription_has_the_names_that_artemis_reads(urls: Urls, header: str) -> None:
    named = {header: "mine"}
    with Raw(urls.stomp) as client:
        answer = client.call("SUBSCRIBE", destination="topic", id="s", **named)
        assert answer.command == "ERROR"  # without a client id
    with Raw(urls.stomp) as sender:
        with Raw(urls.stomp, client_id=header) as client:
            client.subscribe("topic", **named)
            client.ok("DISCONNECT")
        sender.ok("SEND", b"away", destination="topic", **{"destination-type": "MULTICAST"})
        with Raw(urls.stomp, client_id=header) as client:
            client.subscribe("topic", **named)
            frame = client.next("MESSAGE")
            assert frame.body == b"away"
            client.ok("ACK", id=frame.headers["ack"])
            client.ok("UNSUBSCRIBE", id="s")
            sender.ok("SEND", b"kept", destination="topic", **{"destination-type": "MULTICAST"})
            client.subscribe("topic", **named)
            assert client.next("MESSAGE").body == b"kept"
            if header == "activemq.subscriptionName":  # as this library says it, which ends its consumer before
                client.ok("UNSUBSCRIBE", id="s")
                client.ok("UNSUBSCRIBE", destination="topic", **named)
                return
            client.ok("UNSUBSCRIBE", id="s", **named)
            sender.ok("SEND", b"lost", destination="topic", **{"destination-type": "MULTICAST"})
            client.subscribe("topic", **named)
            assert urls.taken(client) == 0
            client.ok("UNSUBSCRIBE", id="s", **named)
            client.ok("UNSUBSCRIBE", id="another", **named)  # it is gone: no error
