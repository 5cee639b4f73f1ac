"""Options: what they become, and an error for each mistake that names the option as the user knows it."""

from __future__ import annotations

import pickle
from contextlib import suppress
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark")

from tests.spark.option_page import documentation

from redelivery.model.destinations import Queue, Topic
from redelivery.model.errors import ConfigError
from redelivery.spark.options.query import BrowseOptions, SinkOptions, SourceOptions
from redelivery.spark.options.table import OPTIONS, READ, READ_STREAM, WRITE, options_of

SOURCE = {"url": "stomp://broker:61613", "path": "orders", "wallocation": "/data/wal"}
SECRET = "hunter2"  # noqa: S105 - made up
PARSERS: dict[str, Any] = {READ_STREAM: SourceOptions, READ: BrowseOptions, WRITE: SinkOptions}


def source(**options: str) -> SourceOptions:
    return SourceOptions.parse({**SOURCE, **options})


def refusal(**options: str) -> str:
    with pytest.raises(ConfigError) as refused:
        source(**options)
    return str(refused.value)


def test_the_defaults() -> None:
    options = source()
    assert options.destinations == (Queue("orders"),)
    assert (options.receiver, options.lanes, options.num_partitions) == ("driver", 1, 1)
    assert (options.max_messages_per_batch, options.segment_rows, options.max_pending_rows) == (50_000, 10_000, 200_000)
    assert (options.linger, options.receive_timeout, options.max_receive_time) == (5.0, 0.1, 5.0)
    assert (options.dedupe, options.dedupe_window, options.retain_batches) == ("inDoubt", 86_400.0, 1)
    assert (options.bad_messages, options.max_redeliveries, options.redelivery_delay) == ("deadLetter", -1, 1.0)
    assert (options.max_batch_attempts, options.on_batch_failure, options.max_reconnect_time) == (0, "fail", 300.0)
    assert (options.username, options.password, options.selector, options.converter) == (None, None, None, None)
    assert (options.dead_letter_queue, options.available_now_max_time, options.storage_options) == (None, None, None)
    assert (options.fail_on_data_loss, options.compression, options.properties_type) == (True, "zstd", "string")
    assert not options.errors


def test_each_option_is_read_in_any_case() -> None:
    options = SourceOptions.parse(
        {
            "URL": "amqps://broker",
            "DESTINATION": "queue://a.b",
            "User": "anna",
            "PASSWORD": SECRET,
            "Dialect": "Artemis",
            "selector": "color = 'red'",
            "WALLocation": "s3://bucket/wal",
            "storageoptions": '{"anon": true}',
            "receiver": "Executor",
            "NUMPARTITIONS": "4",
            "maxoffsetspertrigger": "1000",
            "receiveTimeout": "250ms",
            "maxReceiveTime": "2 Minutes",
            "failOnDataLoss": "FALSE",
            "dedupe": "indoubt",
            "dedupeWindow": "2 days",
            "badMessages": "PERMISSIVE",
            "converter": "shop.orders:decode",
            "deadLetterQueue": "queue://shop.DLQ",
            "maxBatchAttempts": "3",
            "onBatchFailure": "deadletter",
            "availableNowMaxTime": "1.5 h",
            "propertiesType": "Variant",
        }
    )
    assert options.destinations == (Queue("a.b"),)
    assert (options.username, options.password, options.dialect) == ("anna", SECRET, "artemis")
    assert options.storage_options == {"anon": True}
    assert (options.receiver, options.num_partitions, options.max_messages_per_batch) == ("executor", 4, 1000)
    assert (options.receive_timeout, options.max_receive_time) == (0.25, 120.0)
    assert options.fail_on_data_loss is False
    assert (options.dedupe, options.dedupe_window) == ("inDoubt", 172_800.0)
    assert options.errors
    assert options.dead_letter_queue == "shop.DLQ"
    assert options.on_batch_failure == "deadLetter"
    assert options.available_now_max_time == 5400.0
    assert options.properties_type == "variant"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("5", 5.0), ("0.5", 0.5), ("100 ms", 0.1), ("5s", 5.0), ("2 minutes", 120.0), ("1h", 3600.0), (" 3 SEC ", 3.0)],
)
def test_durations(text: str, seconds: float) -> None:
    assert source(redeliverydelay=text).redelivery_delay == seconds


@pytest.mark.parametrize("text", ["", "-1", "5 parsecs", "1e3", "five", "1 2", "nan", "9" * 13, "99999 days", "٣"])
def test_what_is_not_a_duration(text: str) -> None:
    assert refusal(redeliverydelay=text).startswith(f"redeliveryDelay={text!r} is not a duration")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"linger": "soon"}, ("linger='soon'", "is not a duration", "5 s")),
        ({"maxmessagesperbatch": "0"}, ("maxMessagesPerBatch=0", "from 1")),
        ({"maxoffsetspertrigger": "many"}, ("maxOffsetsPerTrigger='many'", "must be an integer")),
        ({"receiver": "both"}, ("receiver='both'", "driver or executor")),
        ({"failondataloss": "maybe"}, ("failOnDataLoss='maybe'", "true or false")),
        ({"compression": "gzip"}, ("compression='gzip'", "zstd, lz4 or none")),
        ({"dialect": "kafka"}, ("dialect='kafka'", "'artemis'")),
        ({"path": ""}, ("path", "''")),
        ({"path": "http://orders"}, ("path", "'queue://'")),
        ({"path": "topic://news"}, ("topic://news", "subscription", "VirtualTopic", "Artemis: <address>::<queue>")),
        ({"selector": " "}, ("selector=' '",)),
        ({"wallocation": "wal"}, ("walLocation='wal'", "absolute path or a URL")),
        ({"storageoptions": "anon"}, ("storageOptions", "JSON object")),
        ({"storageoptions": "[]"}, ("storageOptions", "JSON object")),
        ({"converter": "decode"}, ("converter='decode'", "'module:function'")),
        ({"deadletterqueue": "topic://x"}, ("deadLetterQueue='topic://x'", "one queue")),
        ({"deadletterqueue": "dead.>"}, ("deadLetterQueue='dead.>'", "one queue")),
        ({"propertiestype": "json"}, ("propertiesType='json'", "string or variant")),
        ({"lanes": "65"}, ("lanes=65", "1 to 64")),
        ({"url": "vm://here"}, ("url='vm://here'", "inside one process", "stomp:// or amqp://")),
        ({"url": "tcp://broker:61616"}, ("url='tcp://broker:61616'", "stomp, stomp+ssl, amqp, amqps")),
        ({"url": "broker"}, ("url: ", "scheme")),
        ({"url": "stomp://h?jms.prefetchPolicy.all=1"}, ("url=", "jms.prefetchPolicy", "option prefetch")),
        ({"url": "stomp://h?jms.clientID=me"}, ("url=", "jms.clientID")),
        ({"url": "stomp://h?jms.nonBlockingRedelivery=true"}, ("url=", "jms.nonBlockingRedelivery")),
    ],
)
def test_a_bad_value_is_named_with_what_is_right(options: dict[str, str], said: tuple[str, ...]) -> None:
    text = refusal(**options)
    assert all(each in text for each in said), text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"destination": "other"}, ("path='orders'", "destination='other'", "same option")),
        ({"maxmessagesperbatch": "1", "maxoffsetspertrigger": "2"}, ("maxMessagesPerBatch='1'", "same option")),
        ({"receiver": "executor", "lanes": "2"}, ("lanes is for receiver=driver", "use numPartitions")),
        ({"receiver": "executor", "linger": "2s"}, ("linger is for receiver=driver", "use receiveTimeout")),
        ({"receiver": "executor", "segmentrows": "2"}, ("segmentRows is for", "use maxMessagesPerBatch")),
        (
            {"receiver": "executor", "maxpendingrows": "100000"},
            ("maxPendingRows is for receiver=driver", "leave it out"),
        ),
        ({"receivetimeout": "2 s"}, ("receiveTimeout is for receiver=executor", "with receiver=driver", "use linger")),
        ({"receiver": "Driver", "maxreceivetime": "9 s"}, ("maxReceiveTime is for receiver=executor", "leave it out")),
        ({"segmentrows": "20", "maxpendingrows": "10"}, ("segmentRows=20", "maxPendingRows=10")),
        ({"segmentrows": "20", "maxmessagesperbatch": "10"}, ("segmentRows=20", "maxMessagesPerBatch=10")),
        ({"numpartitions": "3", "maxmessagesperbatch": "2"}, ("numPartitions=3", "maxMessagesPerBatch=2")),
        ({"receiver": "executor", "receivetimeout": "9 s"}, ("receiveTimeout=9", "maxReceiveTime=5")),
        ({"storageoptions": "{}"}, ("storageOptions", "local folder")),
        ({"dedupe": "off", "dedupewindow": "1 h"}, ("dedupeWindow", "dedupe=off")),
        ({"onbatchfailure": "deadLetter"}, ("onBatchFailure=deadLetter", "maxBatchAttempts")),
        (
            {"path": "ActiveMQ.DLQ", "badmessages": "deadLetter"},
            ("badMessages=deadLetter", "queue://ActiveMQ.DLQ", "deadLetterQueue"),
        ),
        (
            {"path": "d", "deadletterqueue": "queue://d", "badmessages": "deadLetter"},
            ("badMessages=deadLetter", "queue://d"),
        ),
        (
            {"path": "ActiveMQ.DLQ", "badmessages": "fail", "onbatchfailure": "deadLetter", "maxbatchattempts": "2"},
            ("onBatchFailure=deadLetter",),
        ),
        ({"user": "anna", "username": "bert"}, ("username='bert' and user='anna'", "same option")),
        ({"user": "anna", "url": "stomp://bert@h"}, ("username", "twice")),
        ({"password": SECRET, "url": f"stomp://bert:{SECRET}@h"}, ("password", "twice")),
        ({"password": SECRET}, ("password", "without username")),
        (
            {"maxredeliveries": "3", "url": "stomp://h?jms.redeliveryPolicy.maximumRedeliveries=2"},
            ("maxRedeliveries", "jms.redeliveryPolicy"),
        ),
    ],
)
def test_contradictions(options: dict[str, str], said: tuple[str, ...]) -> None:
    text = refusal(**options)
    assert all(each in text for each in said), text
    assert SECRET not in text


def test_a_login_may_be_shared_between_url_and_options() -> None:
    options = source(url="stomp://anna@h", password=SECRET)
    assert (options.username, options.password, options.masked_url) == (None, SECRET, "stomp://anna@h")


def test_what_was_not_asked_for_gives_way() -> None:
    assert source(maxmessagesperbatch="100").segment_rows == 100
    assert source(maxpendingrows="50").segment_rows == 50
    assert source(maxmessagesperbatch="1000000").max_pending_rows == 1_000_000
    assert source(path="ActiveMQ.DLQ", badmessages="permissive").destinations == (Queue("ActiveMQ.DLQ"),)
    assert source(path="ActiveMQ.DLQ", deadletterqueue="second.DLQ").dead_letter_queue == "second.DLQ"
    assert source(destination="orders").destinations == (Queue("orders"),)


@pytest.mark.parametrize("name", ["url", "path", "wallocation"])
def test_what_is_missing_is_named(name: str) -> None:
    with pytest.raises(ConfigError, match=r"^(url|destination|walLocation) is missing: "):
        SourceOptions.parse({each: text for each, text in SOURCE.items() if each != name})


@pytest.mark.parametrize(
    ("text", "seconds"), [("100ms", 0.1), ("2s", 2.0), ("0.25", 0.25), ("3", 3.0), ("50 ms", 0.05)]
)
def test_linger_has_a_unit_or_is_seconds(text: str, seconds: float) -> None:
    assert source(linger=text).linger == seconds


def test_a_value_that_is_not_a_str() -> None:
    with pytest.raises(ConfigError, match="lanes must be a str, not int"):
        SourceOptions.parse({**SOURCE, "lanes": 2})  # type: ignore[dict-item]  # what the check is for


def test_browse_options() -> None:
    options = BrowseOptions.parse({"url": "amqp://h", "path": "q", "selector": "a = 1"})
    assert (options.destinations, options.selector) == ((Queue("q"),), "a = 1")
    for name in ("wallocation", "receiver"):
        with pytest.raises(ConfigError, match=f"'{name}' is not an option of read, but of readStream: add walLocation"):
            BrowseOptions.parse({"url": "amqp://h", "path": "q", name: "x"})


def test_sink_options() -> None:
    options = SinkOptions.parse({"url": "amqp://h", "checkpointlocation": "/c", "queryname": "q"})
    assert (options.destination, options.persistent, options.priority, options.ttl) == (None, True, 4, 0.0)
    assert (options.dedupe, options.job_id, options.max_reconnect_time) == (True, None, 300.0)
    options = SinkOptions.parse(
        {"url": "amqp://h", "destination": "topic://news", "persistent": "false", "priority": "9", "ttl": "1 min"}
    )
    assert (options.destination, options.persistent, options.priority, options.ttl) == (Topic("news"), False, 9, 60.0)
    for wrong, said in (
        ({"priority": "10"}, "priority=10 must be .*0 to 9"),
        ({"destination": "news.>"}, "destination='news.>' is a pattern"),
        ({"jobid": "a", "dedupe": "false"}, "jobId has no effect with dedupe=false"),
    ):
        with pytest.raises(ConfigError, match=said):
            SinkOptions.parse({"url": "amqp://h", **wrong})


def test_no_secret_is_shown() -> None:
    options = SourceOptions.parse(
        {
            **SOURCE,
            "user": "anna",
            "password": SECRET,
            "wallocation": "s3://b/w",
            "storageoptions": f'{{"k": "{SECRET}"}}',
        }
    )
    assert SECRET not in repr(options)
    assert "anna" in repr(options)
    assert SECRET not in str(source(url=f"stomp://anna:{SECRET}@h"))
    assert source(url=f"stomp://anna:{SECRET}@h").masked_url == "stomp://anna:****@h"
    for wrong in (
        {"url": f"stomp://anna:{SECRET}@h:port"},
        {"url": f"vm://anna:{SECRET}@h"},
        {"storageoptions": f'{{"k": "{SECRET}"'},
        {"user": "a", "password": f"{SECRET}\0"},
        {"password": SECRET},
    ):
        assert SECRET not in refusal(**wrong)


@pytest.mark.parametrize(("kind", "options"), [(READ_STREAM, SOURCE), (READ, {"url": "amqp://h", "path": "q"})])
def test_they_travel_to_the_executors(kind: str, options: dict[str, str]) -> None:
    parsed = PARSERS[kind].parse(options)
    assert pickle.loads(pickle.dumps(parsed)) == parsed  # noqa: S301 - our own bytes


@pytest.mark.parametrize("kind", [READ_STREAM, READ, WRITE])
def test_the_table_is_what_is_parsed(kind: str) -> None:
    names = {option.field for option in options_of(kind).values()}
    if kind != WRITE:
        names -= {"destination", "include_properties"}  # parts of `destinations` and `columns`
    assert names == {each.name for each in fields(PARSERS[kind])}


def test_every_default_can_be_written_out() -> None:
    for option in OPTIONS:
        if option.default is not None:
            assert option.parse(option.name, option.default) is not None


def test_the_documentation_has_each_option() -> None:
    rows = {name: (default, meaning) for name, default, meaning in documentation(READ_STREAM)}
    assert rows["`url`"][0] == rows["`destination` (or `path`)"][0] == rows["`walLocation`"][0] == "required"
    assert rows["`linger`"] == (
        "`5 s`",
        "`receiver=driver`: How long a transaction stays open for more messages after its first while Spark is busy; "
        "when Spark asks for rows, it ends at once.",
    )
    assert rows["`converter`"][0] == "none"
    assert all(meaning.endswith(".") for _, meaning in rows.values())


@given(st.sampled_from(sorted(options_of(READ_STREAM))), st.text(max_size=12))
def test_any_text_is_a_value_or_a_config_error(name: str, text: str) -> None:
    with suppress(ConfigError):
        source(**{name.lower(): text})


def test_who_reads_the_dead_letters_does_not_send_them_back() -> None:
    assert source(path="ActiveMQ.DLQ").bad_messages == "fail"
    assert source().bad_messages == "deadLetter"
