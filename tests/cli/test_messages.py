"""`redelivery send`, `receive`, `browse` and `tail`: what they print, their exit codes, and how they end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from tests.run.commands import CliRunner, Result
from tests.run.forked import Forked

import redelivery
from redelivery import Message
from redelivery.broker import EmbeddedBroker
from redelivery.cli.app import app

COMMAND = (sys.executable, "-W", "error", "-c", "from redelivery.cli.main import main; main()")


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(f"cli-{uuid4().hex}", stomp_port=0) as broker:
        yield broker


def run(broker: EmbeddedBroker, *arguments: str, **options: Any) -> Result:
    return CliRunner(env={"REDELIVERY_URL": broker.stomp_url}).invoke(app, arguments, **options)


def records(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_what_is_sent_is_browsed_and_received(broker: EmbeddedBroker) -> None:
    sent = run(broker, "send", "orders", "two chairs", "a table", "--property", "tenant=eu", "--type", "order")
    assert (sent.exit_code, sent.output) == (0, "2 sent to queue://orders\n")
    browsed = run(broker, "browse", "orders")
    assert [line.partition("  ID:")[2].partition("  ")[2] for line in browsed.output.splitlines()] == [
        "two chairs",
        "a table",
    ]
    (found,) = records(run(broker, "browse", "orders", "--json", "--limit", "1").output)
    assert (found["body"], found["body_type"], found["type"]) == ("two chairs", "text", "order")
    assert found["properties"] == {"tenant": "eu"}
    assert run(broker, "receive", "orders", "--count", "9", "--timeout", "0.2").output == "two chairs\na table\n"
    assert broker.queue_depth("orders") == 0


def test_nothing_to_receive_is_exit_code_1(broker: EmbeddedBroker) -> None:
    done = run(broker, "receive", "orders", "--timeout", "0")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == "redelivery receive: nothing came within 0 s\n"


def test_standard_input_is_a_message_or_one_a_line(broker: EmbeddedBroker) -> None:
    run(broker, "send", "orders", input="one\ntwo\n")
    run(broker, "send", "orders", "--lines", input="three\nfour\n")
    assert [message.body for message in broker.messages("orders")] == ["one\ntwo\n", "three", "four"]


def test_bodies_of_every_kind_are_printed(broker: EmbeddedBroker) -> None:
    for body in (b"\xff\x00", {"n": 1}):
        broker.send("orders", body)
    done = run(broker, "receive", "orders", "--count", "2")
    assert done.stdout_bytes == b'\xff\x00\n{"n": 1}\n'


def test_options_of_a_send(broker: EmbeddedBroker) -> None:
    options = ("--correlation-id", "7", "--reply-to", "answers", "--priority", "9", "--ttl", "60", "--non-persistent")
    (said,) = records(run(broker, "send", "orders", "x", "--json", *options).output)
    (message,) = broker.messages("orders")
    assert (message.correlation_id, str(message.reply_to), message.priority) == ("7", "queue://answers", 9)
    assert (message.persistent, message.expiration is None) == (False, False)
    assert said["priority"] == 9


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("send", "orders", "x", "--property", "tenant"), "write NAME=VALUE"),
        (("send", "orders", "x", "--priority", "12"), "priority=12"),
        (("browse", "topic://news"), "topic"),
        (("browse", "orders", "--where", "tenant ="), "tenant ="),
        (("receive", "/queue/orders"), "orders"),
    ],
)
def test_wrong_usage_is_exit_code_2(broker: EmbeddedBroker, arguments: tuple[str, ...], says: str) -> None:
    done = run(broker, *arguments)
    assert done.exit_code == 2, done.output
    assert done.stderr.startswith(f"redelivery {arguments[0]}: ")
    assert says in done.stderr


def test_without_a_url_or_a_broker() -> None:
    assert CliRunner(env={"REDELIVERY_URL": None}).invoke(app, ["browse", "orders"]).exit_code == 2
    away = CliRunner().invoke(app, ["browse", "orders", "--url", "stomp://127.0.0.1:9"])
    assert away.exit_code == 1
    assert "127.0.0.1:9" in away.stderr


def test_a_message_is_acknowledged_when_it_has_been_printed(broker: EmbeddedBroker) -> None:
    broker.send("orders", "one")
    with Forked[bytes](
        (*COMMAND, "receive", "orders", "--url", broker.stomp_url), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.close()  # nobody reads
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert process.returncode == 0
    broker.wait_for("orders", depth=1)


def test_tail_prints_what_comes_until_ctrl_c_and_takes_nothing(broker: EmbeddedBroker) -> None:
    broker.send("orders", "before")
    command = (*COMMAND, "tail", "orders", "--url", broker.stomp_url, "--interval", "0.05", "--json")
    with Forked[str](command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        watchdog = threading.Timer(30, process.kill)
        watchdog.start()
        assert process.stdout is not None
        seen = [json.loads(process.stdout.readline())["body"]]
        broker.send("orders", "after")
        seen.append(json.loads(process.stdout.readline())["body"])
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate()
        watchdog.cancel()
    assert seen == ["before", "after"]
    assert (process.returncode, rest, errors) == (130, "", "redelivery tail: interrupted\n")
    assert broker.queue_depth("orders") == 2


def test_a_record_becomes_the_message_that_it_was() -> None:
    from redelivery.operate.letters.records import from_record, to_record

    values = {"b": True, "i": 5, "l": redelivery.Long(5), "by": redelivery.Byte(1), "sh": redelivery.Short(2)}
    reals = {"f": redelivery.Float(0.5), "d": 0.5, "nan": float("nan"), "inf": float("-inf"), "none": None}
    for body in ("text", b"\x00\xff", {"data": b"\x01", **values, **reals}, [b"\x02", 1.5, "x"], None):
        message = Message(body, properties=values, correlation_id=b"\x07", reply_to="topic://a", group_id="g")
        again = from_record(json.loads(json.dumps(to_record(message))))
        assert repr(again.body) == repr(message.body)
        assert type(again.body) is type(message.body)
        for name, value in values.items():
            assert (again.properties[name], type(again.properties[name])) == (value, type(value))
        assert (again.correlation_id, again.reply_to, again.group_id) == (b"\x07", message.reply_to, "g")


@pytest.mark.parametrize(
    "record",
    [
        5,
        {"body": {"$long": 5}, "body_type": "text"},
        {"body": "x", "body_type": "bytes"},
        {"body": [{"$what": 1}]},
        {"body": {"$bytes": "not base64"}, "body_type": "bytes"},
        {"properties": {"n": [1]}},
        {"properties": 5},
        {"reply_to": ""},
        {"body": None, "unreadable": "no such codec"},
    ],
)
def test_what_is_no_record_is_refused(record: object) -> None:
    from redelivery.operate.letters.records import from_record

    with pytest.raises(redelivery.ConfigError):
        from_record(record)
