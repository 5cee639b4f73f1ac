"""Checks what RabbitMQ's management reports beside rules and queues."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from redelivery.operate.doctor.findings import Finding


@dataclass(frozen=True, slots=True)
class Feature:
    """A deprecated feature that is in use. ``phase``: as RabbitMQ calls it, such as ``permitted_by_default``."""

    name: str
    phase: str


@dataclass(frozen=True, slots=True)
class Reported:
    """``guests``: connections of the user ``guest``. ``streams``: consumers by stream that read it as a queue."""

    deprecated: tuple[Feature, ...] = ()
    guests: int = 0
    streams: Mapping[str, int] = field(default_factory=dict)


def check_reported(reported: Reported, *, guest_is_said: bool) -> Iterator[Finding]:
    """The findings. ``guest_is_said``: that this connection's own login is the default one is said already."""
    for feature in reported.deprecated:
        yield Finding(
            "warning",
            "deprecated",
            f"the deprecated feature {feature.name} is in use ({feature.phase.replace('_', ' ')})",
            "a later version of RabbitMQ refuses it, and what uses it stops working with the upgrade",
            "see RabbitMQ's page on deprecated features, and use what it names instead",
        )
    if reported.guests and not guest_is_said:
        number = reported.guests
        yield Finding(
            "warning",
            "credentials",
            f"{number} connection{' is' if number == 1 else 's are'} of the user guest",
            "it is an administrator with a password that everybody knows, and who names no user over AMQP is guest too",
            "make a user for each application, and delete guest",
        )
    for name, number in reported.streams.items():
        yield check_stream(f"queue://{name}", f"{number} consumer{' reads' if number == 1 else 's read'}")


def check_stream(title: str, who: str) -> Finding:
    """That a stream is used as a queue."""
    return Finding(
        "warning",
        "stream",
        f"{title} is a stream, and {who} it as a queue",
        "it begins with what is sent after it, nothing is redelivered or a dead letter, and what is acknowledged stays",
        "say where it begins (x-stream-offset), and keep dead letters by a client's own policy; or use a quorum queue",
    )
