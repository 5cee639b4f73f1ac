"""receive_body and the wrong kind of body (JMS 3.1, `receiveBody`)."""

from __future__ import annotations

import pytest
from tests.conformance.stage import NOTHING, SOON, Stage, nothing_comes, receive

from redelivery import AckMode, MessageFormatError


@pytest.mark.needs("map", refused=MessageFormatError)
def test_receive_body_gives_each_kind(stage: Stage) -> None:
    sent = ["text", b"bytes", {"map": "yes"}]
    stage.send(*sent)
    _, consumer = stage.consuming(AckMode.AUTO)
    assert [consumer.receive_body(type(body), timeout=SOON) for body in sent] == sent


@pytest.mark.parametrize("mode", [AckMode.AUTO, AckMode.DUPS_OK])
def test_r9_wrong_kind_in_auto_is_as_if_not_called(stage: Stage, mode: AckMode) -> None:
    stage.send("a", "b")
    _, consumer = stage.consuming(mode)
    for kind in (bytes, dict, list):
        with pytest.raises(MessageFormatError, match="text"):
            consumer.receive_body(kind, timeout=SOON)
    again = receive(consumer)
    assert (again.body, again.delivery_count, again.redelivered) == ("a", 1, False)
    assert consumer.receive_body(str, timeout=SOON) == "b"


@pytest.mark.parametrize("mode", [AckMode.CLIENT, AckMode.INDIVIDUAL, AckMode.TRANSACTED])
def test_r9_wrong_kind_elsewhere_is_as_if_consumed(stage: Stage, mode: AckMode) -> None:
    stage.send("a", "b")
    session, consumer = stage.consuming(mode)
    with pytest.raises(MessageFormatError):
        consumer.receive_body(bytes, timeout=SOON)
    assert receive(consumer).body == "b"
    session.rollback() if session.transacted else session.recover()
    again = receive(consumer)
    assert (again.body, again.delivery_count, again.redelivered) == ("a", 2, True)


@pytest.mark.everywhere_in_long_form
def test_receive_body_returns_none_when_nothing_comes(stage: Stage) -> None:
    _, consumer = stage.consuming(AckMode.AUTO)
    assert consumer.receive_body(str, timeout=NOTHING) is None
    assert nothing_comes(consumer)
