"""What `redelivery dlq` asks before it takes letters away: of one letter, and of several."""

from __future__ import annotations

import pytest
from tests.run.commands import CliRunner

from redelivery.broker import EmbeddedBroker
from redelivery.cli.app import app

DLQ = "ActiveMQ.DLQ"


def asked(broker: EmbeddedBroker, *words: str, code: int = 0) -> str:
    done = CliRunner(env={"REDELIVERY_URL": broker.stomp_url}).invoke(app, ["dlq", *words])
    assert done.exit_code == code, done.output
    return (done.stderr if code else done.stdout).splitlines()[-1]


@pytest.mark.parametrize("number", [1, 2])
def test_what_is_asked_is_said_of_one_letter_and_of_several(number: int) -> None:
    letters, them, home = (
        ("1 letter", "it", "its original queue") if number == 1 else ("2 letters", "them", "their original queue")
    )
    edit = ("edit", DLQ, "--limit", "9", "--set", "body=x")
    with EmbeddedBroker("asking", stomp_port=0) as broker:
        for body in "ab"[:number]:
            broker.send(DLQ, body, properties={"originalDestination": "queue://orders"})
        assert asked(broker, *edit, "--dry-run") == f"would edit {letters} and send {them} to {home}"
        assert asked(broker, "replay", DLQ, "--dry-run") == f"would replay {letters} to {home}"
        to = asked(broker, *edit, "--to", "A{b}", "--dry-run")
        assert to == f"would edit {letters} and send {them} to queue://A{{b}}"
        assert f"this would delete {letters} permanently: add --yes" in asked(broker, "purge", DLQ, code=2)
