"""What was sent in a transaction that is undone, in whatever way, is never seen by anybody; the connection lives on.

The sends go to queues that are new, where a link of AMQP waits for its first credit.
"""

from __future__ import annotations

import pytest
from tests.conformance.stage import NOTHING, Stage, receive

from redelivery import AckMode, Connection, JMSError, Session

LINKS = 4  # queues of one transaction


@pytest.mark.parametrize(
    ("way", "body"),
    [
        *((way, "never") for way in ("rollback", "session", "connection", "an error", "an interrupt")),
        pytest.param("rollback", "never" * 40_000, marks=pytest.mark.needs("large bodies"), id="rollback-large"),
        pytest.param("session", "never" * 40_000, marks=pytest.mark.needs("large bodies"), id="session-large"),
    ],
)
def test_what_was_sent_and_undone_is_never_seen(stage: Stage, way: str, body: str) -> None:
    errors: list[JMSError] = []
    connection = stage.connect(exception_listener=errors.append)
    session = connection.session(AckMode.TRANSACTED)
    kept = stage.beside("kept")
    session.producer(kept).send("1")
    session.commit()  # over AMQP the next transaction is declared by now
    queues = [stage.beside(number) for number in range(LINKS)]
    undo(connection, session, way, [*queues, queues[0]], body)
    if way == "connection":
        connection = stage.connect(exception_listener=errors.append)
    if way in ("connection", "session"):
        session = connection.session(AckMode.TRANSACTED)
    session.producer(kept).send("2")
    session.commit()
    assert seen(stage, [kept, *queues]) == ["1", "2"]
    connection.close()
    assert errors == []


def undo(connection: Connection, session: Session, way: str, queues: list[str], body: str) -> None:
    """Send to each, and undo it."""
    producer = session.producer()

    def send() -> None:
        for queue in queues:
            producer.send(body, queue)

    def leave_by(error: BaseException) -> None:
        with session.transaction():
            send()
            raise error

    if way in ("an error", "an interrupt"):
        error = ValueError("no") if way == "an error" else KeyboardInterrupt()
        with pytest.raises(type(error)):
            leave_by(error)
        return
    send()
    if way == "rollback":
        session.rollback()
    elif way == "session":
        session.close()
    else:
        connection.close()


def seen(stage: Stage, queues: list[str]) -> list[object]:
    """What another client gets of them; the first two are there, and what else there were would be there by then."""
    with stage.connect() as connection, connection.session() as session:
        consumers = [session.consumer(queue) for queue in queues]
        found = [receive(consumers[0]).body, receive(consumers[0]).body]
        for at, consumer in enumerate(consumers):
            while (message := consumer.receive(timeout=0 if at else NOTHING)) is not None:
                found.append(message.body)
        return found
