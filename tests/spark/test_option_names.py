"""The names of options: those that people type for one are answered with the right one, never with a list."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

pytest.importorskip("pyspark")

import redelivery
from redelivery.model.errors import ConfigError
from redelivery.spark.options.names import _BY_NAME
from redelivery.spark.options.query import BrowseOptions, SinkOptions, SourceOptions
from redelivery.spark.options.table import OPTIONS, READ, READ_STREAM, WRITE, options_of

SOURCE = {"url": "stomp://broker:61613", "path": "orders", "wallocation": "/data/wal"}
PARSERS: dict[str, Any] = {READ_STREAM: SourceOptions, READ: BrowseOptions, WRITE: SinkOptions}


def refusal(**options: str) -> str:
    with pytest.raises(ConfigError) as refused:
        SourceOptions.parse({**SOURCE, **options})
    return str(refused.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("wallocatoin", "did you mean walLocation?"),
        ("maxmesagesperbatch", "did you mean maxMessagesPerBatch?"),
        ("pth", "did you mean path?"),
        ("ttl", "'ttl' is not an option of readStream, but of write: leave it out"),
        ("zzz", "'zzz' is not an option of readStream; docs/spark/options.md has a table"),
        ("max_messages_per_batch", "write maxMessagesPerBatch"),
        ("poll.interval", "write pollInterval"),
        (
            "checkpointlocation",
            "it belongs to the query, not to the source: df.writeStream.option('checkpointLocation'",
        ),
        *((each, "use destination") for each in ("queue", "queueName", "QUEUE_NAME")),
        ("queues", "use destinations"),
        *((each, "'topic://NAME', and subscription: a name") for each in ("topic", "subscribe")),
        *((each, "a pattern such as 'topic://news.*'") for each in ("topics", "subscribePattern")),
        *((each, "use subscription") for each in ("subscriptionId", "subscriptionName", "durableSubscriptionName")),
        ("maxTriggerDelay", "no effect without minMessagesPerBatch"),
        *((each, "use minMessagesPerBatch") for each in ("minRowsPerTrigger", "minRecords")),
        ("deleteSubscriptionOnStreamStop", "stays when a query ends"),
        ("groupIdPrefix", "an id of its own"),
        ("fetchBufferSize", "use prefetch"),
        ("numFetchPartitions", "use lanes"),
        *(
            (each, "storageOptions has the credentials")
            for each in ("awsAccessKey", "roleArn", "kafka.sasl.jaas.config")
        ),
        *((each, "the broker pushes messages") for each in ("maxFetchRate", "shardsPerTask")),
        *((each, "binds to the exchange") for each in ("exchangeName", "exchangeType")),
        *((each, "from_json(string(body)") for each in ("inferSchema", "header")),
        *((each, "use maxReconnectTime") for each in ("automaticRecovery", "fetchOffset.numRetries", "autoReconnect")),
        *(
            (each, "use url, such as")
            for each in ("java.naming.provider.url", "eventhubs.connectionString", "addresses")
        ),
        ("consumerNamePrefix", "an id of its own"),
        ("usesCorrelationId", "use dedupe"),
        ("kafka.max.poll.interval.ms", "it is for another system's client"),
        ("deliveryMode", "use persistent, of write, if that is meant"),
        ("service.url", "use url, such as"),
        *((each, "use url, such as stomp://host:61613") for each in ("host", "port", "brokerURL", "broker", "uri")),
        ("kafka.bootstrap.servers", "use url, such as"),
        *((each, "a queue has no offsets") for each in ("startingOffsets", "endingOffsets", "startingTimestamp")),
        *((each, "use maxMessagesPerBatch") for each in ("maxRowsPerTrigger", "batchSize", "maxFilesPerTrigger")),
        *((each, "clientId") for each in ("client_id", "jms.clientID")),
        ("group.id", "an id of its own"),
        *((each, "use username") for each in ("login", "userId")),
        *((each, "use password") for each in ("passwd", "pwd")),
        *((each, "stomp+ssl://") for each in ("tls", "ssl", "useSSL")),
        *((each, "use maxRedeliveries") for each in ("maximumRedeliveries", "redelivery_policy", "maxRetries")),
        *((each, "use deadLetterQueue") for each in ("dlq", "dead_letter_strategy")),
        *((each, "use maxReconnectTime") for each in ("connect_timeout", "request_timeout")),
        *((each, "acknowledges a message when its row") for each in ("ack_mode", "transacted", "sessionTransacted")),
        ("messageSelector", "use selector"),
        ("walPath", "use walLocation"),
        ("prefetchSize", "use prefetch"),
        ("concurrency", "use lanes"),
    ],
)
def test_an_unknown_name(name: str, said: str) -> None:
    assert said in refusal(**{name: "1"})


def test_what_is_typed_for_a_stream_without_wal_location() -> None:
    for name in ("wallocatoin", "maxmesagesperbatch"):
        with pytest.raises(ConfigError, match=r"did you mean .*, of readStream. A stream needs walLocation"):
            BrowseOptions.parse({"url": "stomp://h", "path": "q", name: "1"})


@pytest.mark.parametrize("name", sorted(_BY_NAME))
def test_no_synonym_is_answered_with_a_list(name: str) -> None:
    enough = {READ_STREAM: SOURCE, READ: {"url": "amqp://h", "path": "q"}, WRITE: {"url": "amqp://h"}}
    for kind, options in enough.items():
        if (kind, name) == (WRITE, "checkpointlocation"):  # Spark hands it to the sink
            continue
        with pytest.raises(ConfigError) as refused:
            PARSERS[kind].parse({**options, name: "1"})
        text = str(refused.value)
        assert text.startswith(f"{name!r} is not an option of {kind}"), text
        assert len(text) < 200


def test_every_synonym_leads_to_an_option_or_to_advice() -> None:
    known = {option.name for option in OPTIONS}
    planned = {"maxBytesPerBatch"}
    assert {right for right in _BY_NAME.values() if " " not in right} <= known | planned
    assert not {each.lower() for each in known} & _BY_NAME.keys()


def test_the_names_of_connect_are_the_same_or_are_answered() -> None:
    for name in ("username", "password", "dialect", "prefetch"):
        assert name in {option.name for option in options_of(READ_STREAM).values()}
    for name in inspect.signature(redelivery.connect).parameters:
        if name not in options_of(READ_STREAM):
            assert "docs/spark/options.md has a table" not in refusal(**{name: "1"}), name
