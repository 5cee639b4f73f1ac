"""Plays a scenario with clients that do just what it says: AMQP on proton's engine, STOMP frame by frame."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from time import monotonic, sleep
from typing import Any

import proton
from tests.broker.amqp.amqp_client import ACCEPTED, MODIFIED, REJECTED, RELEASED, Peer, Refused, decoded
from tests.broker.raw_stomp import Raw
from tests.differential.describe import describe_amqp, describe_stomp, now_ms
from tests.differential.scenario import Played, Scenario

_TOPIC = "topic://"
_SUBSCRIPTION, _CLIENT = "own", "client"
_PRIORITY, _OWN = 6, {"colour": "red"}  # of each message that is sent


@dataclass(frozen=True, slots=True)
class Place:
    """Where a broker is reached, and how it names a queue or a topic over STOMP; ``anycast``: by a header, too."""

    amqp: str | None
    stomp: str | None
    prefix: str = "/queue/"
    topics: str = "/topic/"
    anycast: bool = False

    @property
    def more(self) -> dict[str, str]:
        """Of a SUBSCRIBE to a queue."""
        return {"subscription-type": "ANYCAST"} if self.anycast else {}


def play(scenario: Scenario, place: Place) -> Played:
    """Send, take and return as the scenario says, then look where the messages are."""
    played = Played()
    left = scenario.manner.endswith("leave")
    with ExitStack() as stack:
        heard = [(topic, stack.enter_context(_subscribed(place, topic))) for topic in scenario.dead if _TOPIC in topic]
        if scenario.manner.startswith("stomp-durable"):
            _play_durable(scenario, place, played)
        else:
            _send(scenario, place)
            _treat(scenario, place, played)
        if scenario.ttl and not left:
            _wait(scenario.ttl / 1000 + 2)
        for topic, client in heard:
            played.dead += [(topic, body, text) for body, text in _taken(client, 0.4)]
    for where in scenario.dead:
        if _TOPIC not in where:
            played.dead += [(where, body, text) for body, text in _drained(scenario, place, where, 0.4)]
    if played.deliveries[scenario.most - 1 :] or (left and _TOPIC not in scenario.queue):
        played.left = len(
            list(_drained(scenario, place, (scenario.queue, *scenario.then)[-1], max(0.7, scenario.patience)))
        )
    return played


def _treat(scenario: Scenario, place: Place, played: Played) -> None:
    if scenario.manner.endswith("leave"):
        _wait(scenario.patience)
    elif scenario.manner.startswith("stomp-"):
        _play_stomp(scenario, place, played)
    else:
        for queue in (scenario.queue, *scenario.then):
            _play_amqp(replace(scenario, queue=queue), place, played)


@contextmanager
def _client(place: Place) -> Iterator[Peer]:
    assert place.amqp is not None
    client = Peer(place.amqp, container=str(uuid.uuid4()))
    try:
        yield client
    finally:
        client.connection.close()
        client.flush()
        client.drop()


def _send(scenario: Scenario, place: Place) -> None:
    is_topic, name = scenario.queue.startswith(_TOPIC), scenario.queue.removeprefix(_TOPIC)
    if scenario.manner.startswith("stomp-"):
        assert place.stomp is not None
        with Raw(place.stomp) as stomp:
            more = {"destination-type": "MULTICAST" if is_topic else "ANYCAST"} if place.more else {}
            where = (place.topics if is_topic else place.prefix) + name
            for number in range(scenario.sends):
                _send_stomp(stomp, scenario, where, str(number + 1), **more)
        return
    with _client(place) as client:
        link = client.sender(name, "topic" if is_topic else "queue")
        ttl = {"ttl": scenario.ttl / 1000} if scenario.ttl else {}
        for number in range(scenario.sends):
            own = {"priority": _PRIORITY, "properties": _OWN, "id": f"own-{number + 1}"}
            client.send(link, {"body": str(number + 1), "durable": scenario.durable, **own, **ttl})


def _send_stomp(stomp: Raw, scenario: Scenario, destination: str, body: str, **more: str) -> None:
    headers = {"destination": destination, "persistent": str(scenario.durable).lower(), "priority": str(_PRIORITY)}
    if scenario.ttl:
        more = {**more, "expires": str(now_ms() + scenario.ttl)}
    stomp.ok("SEND", body.encode(), **headers, **_OWN, **more)


def _play_amqp(scenario: Scenario, place: Place, played: Played) -> None:
    returned: float | None = None
    client: Peer | None = None
    link: Any = None
    try:
        while len(played.deliveries) < scenario.most:
            if client is None:
                assert place.amqp is not None
                client = Peer(place.amqp, container=str(uuid.uuid4()))
            if link is None:
                capabilities = () if "::" in scenario.queue else ("queue",)
                link = client.receiver(scenario.queue, *capabilities, credit=scenario.prefetch)
            if not _await(client, scenario.patience, scenario.prefetch):
                return
            _, delivery, data = client.received.pop(0)
            message: Any = decoded(data)
            _note(played, str(message.body), message.delivery_count, returned)
            returned = monotonic()
            client, link = _returned(client, link, delivery, scenario)
    finally:
        if client is not None:
            client.connection.close()
            client.flush()
            client.drop()


def _returned(client: Peer, link: Any, delivery: Any, scenario: Scenario) -> tuple[Peer | None, Any]:
    """The client and the link after that, None for what has ended."""
    match scenario.manner:
        case "close-link":
            client.end(link)
            return client, None
        case "close-connection" | "drop":
            if scenario.manner == "close-connection":
                _close(client)
            client.drop()
            return None, None
        case "undeliverable":
            _settle(client, delivery, scenario)
            link.flow(1)
            if not _await(client, scenario.patience):  # so the waits show that it does not come there again
                client.end(link)
                return client, None
        case _:
            _settle(client, delivery, scenario)
            link.flow(1)
            client.flush()
    return client, link


def _settle(client: Peer, delivery: Any, scenario: Scenario) -> None:
    states = {"rejected": REJECTED, "released": RELEASED}
    failed, undeliverable = scenario.manner == "modified-failed", scenario.manner == "undeliverable"
    client.settle(delivery, states.get(scenario.manner, MODIFIED), failed=failed, undeliverable=undeliverable)


def _play_stomp(scenario: Scenario, place: Place, played: Played) -> None:
    assert place.stomp is not None
    returned: float | None = None
    while len(played.deliveries) < scenario.most:
        with Raw(place.stomp) as client:
            client.subscribe(place.prefix + scenario.queue, **place.more)
            client.socket.settimeout(scenario.patience)
            try:
                frame = client.next()
            except TimeoutError:
                return
            _note(played, frame.body.decode(), int(frame.headers.get("redelivered") == "true"), returned)
            returned = monotonic()
            client.socket.settimeout(10)
            match scenario.manner:
                case "stomp-disconnect":
                    client.ok("DISCONNECT")
                case "stomp-unsubscribe":
                    client.ok("UNSUBSCRIBE", id="s")
                    client.ok("DISCONNECT")
                case "stomp-nack":
                    client.ok("NACK", id=frame.headers["ack"])
                    client.ok("DISCONNECT")
                case "stomp-ack-abort":
                    client.ok("BEGIN", transaction="t")
                    client.ok("ACK", id=frame.headers["ack"], transaction="t")
                    client.ok("ABORT", transaction="t")
                    client.ok("DISCONNECT")


def _note(played: Played, body: str, count: int, returned: float | None) -> None:
    played.deliveries.append((body, count))
    if returned is not None:
        played.waits.append(round((monotonic() - returned) * 1000))


def _play_durable(scenario: Scenario, place: Place, played: Played) -> None:
    """A durable subscription of Classic gets a message and refuses it, or each of two."""
    assert place.stomp is not None
    topic, name = f"/topic/{scenario.queue}", {"activemq.subscriptionName": _SUBSCRIPTION}
    ids = (_CLIENT, "other") if scenario.manner == "stomp-durable-pair-nack" else (_CLIENT,)
    with ExitStack() as stack:
        clients = [stack.enter_context(Raw(place.stomp, client_id=each)) for each in ids]
        for client in clients:
            client.subscribe(topic, **name)
        _send_stomp(clients[0], scenario, topic, "1")
        for client in clients:
            frame = client.next()
            _note(played, frame.body.decode(), int(frame.headers.get("redelivered") == "true"), None)
            client.ok("NACK", id=frame.headers["ack"])
            client.ok("UNSUBSCRIBE", id="s")
            client.ok("UNSUBSCRIBE", id="s", **name)
            client.ok("DISCONNECT")


def _drained(scenario: Scenario, place: Place, queue: str, patience: float) -> Iterator[tuple[str, str]]:
    """Take all that a queue holds, by the protocol by which it came; nothing where there is no such queue."""
    if scenario.manner.startswith("stomp-"):
        yield from _drain_stomp(place, queue, patience)
        return
    with _client(place) as client:
        try:
            client.receiver(queue, credit=50)
        except Refused:
            return
        yield from _taken(client, patience)


@contextmanager
def _subscribed(place: Place, topic: str) -> Iterator[Peer]:
    with _client(place) as client:
        client.receiver(topic, "topic", credit=50)
        yield client


def _taken(client: Peer, patience: float) -> Iterator[tuple[str, str]]:
    while _await(client, patience):
        _, delivery, data = client.received.pop(0)
        client.settle(delivery, ACCEPTED)
        message: Any = decoded(data)
        yield str(message.body), describe_amqp(message)


def _drain_stomp(place: Place, queue: str, patience: float) -> Iterator[tuple[str, str]]:
    assert place.stomp is not None
    with Raw(place.stomp) as client:
        client.subscribe(place.prefix + queue, ack="auto", **place.more)
        client.socket.settimeout(patience)
        while True:
            try:
                frame = client.next()
            except TimeoutError:
                return
            yield frame.body.decode(), describe_stomp(frame.headers)


def _await(client: Peer, seconds: float, number: int = 1) -> bool:
    end = monotonic() + seconds
    while len(client.received) < number:
        left = end - monotonic()
        if left <= 0 or client.eof:
            return False
        client.step(left)
    return True


def _close(client: Peer) -> None:
    client.connection.close()
    client.flush()
    end = monotonic() + 5
    while not client.connection.state & proton.Endpoint.REMOTE_CLOSED and not client.eof and monotonic() < end:
        client.step(0.1)


def _wait(seconds: float) -> None:
    """Let the brokers' own timers pass: there is nothing to wait for."""
    sleep(seconds)
