"""A loss parts a session's work in two: nothing of the old connection is said on the new one, and counts go on."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from tests.conformance.outage import OUTAGE, Outage, until
from tests.conformance.stage import SOON, Stage, nothing_comes, receive
from tests.run.again import may_hide

from redelivery import AckMode, ConnectionLostError, InDoubtError, Message, RedeliveryPolicy, UnsupportedError
from redelivery.events import Acknowledged, AcknowledgedTooLate, Reconnected

SLOW = RedeliveryPolicy(initial_redelivery_delay=2 * OUTAGE, redelivery_delay=2 * OUTAGE)  # s: it ends after the outage
TRANSFER, DISPOSITION = 0x14, 0x15


def stomp_ids(data: bytes, frame: bytes, header: bytes) -> set[bytes]:
    """What a header says in frames of one kind; bodies here have no line that looks like one."""
    found = set()
    for each in re.split(rb"\x00\n*", data):
        command, _, head = each.lstrip(b"\n").partition(b"\n")
        if command == frame and (value := re.search(rb"(?:^|\n)%b:([^\n]*)" % header, head)) is not None:
            found.add(value[1])
    return found


def amqp_frames(data: bytes) -> Iterator[tuple[int, int, list[Any]]]:
    """Channel, performative and fields of each frame."""
    amqp = pytest.importorskip("tests.transports.amqp_frames")
    while len(data) >= 8:
        if data[:4] == b"AMQP":
            data = data[8:]
            continue
        frame, data = data[: int.from_bytes(data[:4], "big")], data[int.from_bytes(data[:4], "big") :]
        start = frame[4] * 4
        if len(frame) > start and frame[5] == 0:
            described, _ = amqp.decode(bytes(frame[start:]))
            yield int.from_bytes(frame[6:8], "big"), amqp.code(described), list(described.value)


def stale(protocol: str, sent: bytes, got: bytes) -> set[Any]:
    """What is acknowledged, released or rejected by a connection that did not get it."""
    if protocol == "stomp":
        settled = stomp_ids(sent, b"ACK", b"id") | stomp_ids(sent, b"NACK", b"id")
        settled |= stomp_ids(sent, b"ACK", b"message-id") | stomp_ids(sent, b"NACK", b"message-id")
        return settled - stomp_ids(got, b"MESSAGE", b"ack") - stomp_ids(got, b"MESSAGE", b"message-id")
    came = {fields[1] for _, code, fields in amqp_frames(got) if code == TRANSFER}
    settled_ids: set[Any] = set()
    for _, code, fields in amqp_frames(sent):
        if code == DISPOSITION and fields[0]:  # as receiver
            first = fields[1]
            last = first if len(fields) < 3 or fields[2] is None else fields[2]
            settled_ids |= set(range(first, last + 1))
    return settled_ids - came


@may_hide
def test_nothing_of_an_old_connection_is_said_on_a_new_one(stage: Stage, outage: Outage) -> None:
    """Messages held in each mode, a redelivery that waits, a listener that runs: all older than the loss."""
    passed: list[tuple[bytearray, bytearray]] = []
    outage.gate.passed = passed
    connection = outage.connect(prefetch=5)
    entered, leave = threading.Event(), threading.Event()
    handled: list[object] = []

    def handle(message: Message) -> None:
        entered.set()
        assert leave.wait(SOON)
        handled.append(message.body)

    modes = {AckMode.CLIENT: "client", AckMode.INDIVIDUAL: "individual", AckMode.AUTO: "auto"}
    if stage.pair.can("transactions"):
        modes[AckMode.TRANSACTED] = "transacted"
    held: dict[AckMode, Message] = {}
    sessions = {mode: connection.session(mode) for mode in modes}
    for mode, name in modes.items():
        stage.send(f"{name} 1", f"{name} 2", queue=stage.beside(name))
        held[mode] = receive(sessions[mode].consumer(stage.beside(name)))
    waiting = connection.session(AckMode.CLIENT)
    waits = waiting.consumer(stage.beside("waits"), redelivery_policy=SLOW)
    stage.send("waits", queue=stage.beside("waits"))
    receive(waits)
    waiting.recover()
    listening = connection.session(AckMode.CLIENT)
    stage.send("heard", queue=stage.beside("heard"))
    listening.consumer(stage.beside("heard")).listen(handle)
    assert entered.wait(SOON)
    before = len(passed)
    outage.begin()
    until(lambda: bool(outage.seen(Reconnected)))
    for mode in (AckMode.CLIENT, AckMode.INDIVIDUAL):
        held[mode].acknowledge()  # too late
    leave.set()
    assert receive(waits).body == "waits"  # from the broker again, or after its wait
    waiting.acknowledge()
    until(lambda: len(handled) >= 2)  # the one that ran over the loss, and the broker's
    if AckMode.TRANSACTED in sessions:
        sessions[AckMode.TRANSACTED].rollback()
    connection.close()
    assert outage.seen(AcknowledgedTooLate)
    assert len(passed) > before
    protocol = stage.pair.kind.protocol
    assert any(stale(protocol, bytes(sent), b"") for sent, _ in passed[before:]), "nothing was acknowledged at all"
    for sent, got in passed[before:]:
        assert stale(protocol, bytes(sent), bytes(got)) == set()


@may_hide
@pytest.mark.needs("counts after a lost connection")
def test_the_count_goes_on_over_a_loss(stage: Stage, outage: Outage) -> None:
    stage.send("again")
    session = outage.connect(prefetch=1).session(AckMode.CLIENT)
    consumer = session.consumer(stage.queue)
    first = receive(consumer)
    assert (first.delivery_count, first.redelivered) == (1, False)
    for number in (2, 3):
        outage.begin()
        message = receive(consumer)
        assert message.redelivered
        if stage.pair.can("exact counts"):
            assert message.delivery_count == number
        else:
            assert message.delivery_count >= 2  # the flag, at least
    session.acknowledge()
    assert nothing_comes(consumer)


@pytest.mark.needs("browsing", refused=UnsupportedError)
def test_a_browser_looks_anew_after_a_loss(stage: Stage, outage: Outage) -> None:
    stage.send("0", "1", "2")
    session = outage.connect().session()
    browser = session.browser(stage.queue)
    looking = iter(browser)
    assert next(looking).body == "0"
    outage.begin()
    with pytest.raises(ConnectionLostError):
        list(looking)
    assert [message.body for message in browser] == ["0", "1", "2"]


def test_a_send_whose_answer_is_lost_is_in_doubt_and_not_repeated(stage: Stage, outage: Outage) -> None:
    producer = outage.connect().session().producer(stage.queue)
    producer.send("first")
    outage.gate.deafen()
    timer = threading.Timer(OUTAGE, outage.gate.shut, (OUTAGE,))
    timer.start()
    with pytest.raises(InDoubtError) as raised:
        producer.send("second")
    timer.join()
    assert [each.body for each in raised.value.sent] == ["second"]
    producer.send("third")
    assert stage.left_bodies(at_least=3) == ["first", "second", "third"]
    assert not outage.seen(Acknowledged)
