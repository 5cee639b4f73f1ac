"""Steps that the tests of the STOMP server share."""

from __future__ import annotations

from tests.broker.raw_stomp import Raw

from redelivery.broker import EmbeddedBroker
from redelivery.transports.stomp.codec.frames import Frame


def send(client: Raw, *bodies: bytes, to: str = "/queue/q", **headers: str) -> None:
    for body in bodies:
        client.ok("SEND", body, **{"destination": to, "persistent": "true", **headers})


def bodies(frames: list[Frame]) -> list[bytes]:
    return [frame.body for frame in frames]


def left(broker: EmbeddedBroker, queue: str = "q") -> list[object]:
    return [message.body for message in broker.messages(queue)]
