"""What is compared where Java's messages and ours meet."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tests.conformance.java.cases import BODIES, KINDS, OBJECT
from tests.conformance.java.client import JavaMessage
from tests.conformance.java.sides import Lack
from tests.conformance.stage import SOON

from redelivery import AckMode, Connection, Queue

SENT_BY_JAVA = {**BODIES, "object": OBJECT}


def comes(lack: Lack | None) -> bool:
    """Whether a body comes and stays: what the broker could not translate is not copied, and its JSON only as bytes."""
    return arrives(lack) and (lack is None or not (lack.arrives == "" or callable(lack.arrives)))


def arrives(lack: Lack | None) -> bool:
    """Whether a message with that body comes, be it changed."""
    return lack is None or not (lack.raises or lack.java_fails or lack.never)


def of_java(kind: str) -> JavaMessage:
    body = SENT_BY_JAVA[kind]
    return JavaMessage("object" if kind == "object" else KINDS[type(body)], body)


def moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def typed(value: Any) -> Any:
    """A value with its types, those of the elements too: 1, True and 1.0 are not the same here."""
    if isinstance(value, dict):
        return {name: typed(each) for name, each in value.items()}
    if isinstance(value, list):
        return [typed(each) for each in value]
    return type(value).__name__, value


def taken(connection: Connection, queue: Queue, count: int) -> list[object]:
    """The bodies of so many, which are the queue's again; what is empty is None, as a body that is none may be read."""
    with connection.session(AckMode.CLIENT) as session, session.consumer(queue) as consumer:
        found = [consumer.receive(timeout=SOON) for _ in range(count)]
        return [typed(each.body or None) for each in found if each is not None]
