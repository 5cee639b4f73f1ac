"""Every option of the data source `jms`: its name, default, meaning, and where it applies.

Parsing (`redelivery.spark.options.query`) and the documentation's table read this. Spark gives names in lower case
and values as str; a name here is as the user knows it, and the field of the parsed options is the same in snake case.
"""

from __future__ import annotations

from typing import Final

from redelivery.policies.dead_letters import DEFAULT_DEAD_LETTER_QUEUE
from redelivery.spark.options import values as read
from redelivery.spark.options.option import READ, READ_STREAM, WRITE, Option
from redelivery.spark.options.places import PLACES

__all__ = ["OPTIONS", "READ", "READ_STREAM", "WRITE", "Option", "options_of"]

_STREAM: Final = (READ_STREAM,)
_ROWS: Final = (READ_STREAM, READ)
_MANY: Final = 2**31 - 1
_MOST_BYTES: Final = 2**50
_MOST_SEGMENT: Final = 2**30  # Arrow's offsets end at twice that

OPTIONS: Final = (
    *PLACES,
    Option(
        "propertiesType",
        read.choice("string", "variant"),
        "Type of the values in the column `properties`; `variant` keeps JMS's types.",
        "string",
        where=_ROWS,
    ),
    Option(
        "columns",
        read.columns,
        "The columns of the rows, in this order, such as `body,message_id`; without it all. `_error` comes behind.",
        where=_ROWS,
    ),
    Option(
        "includeProperties",
        read.flag,
        "`false`: all columns but `properties`.",
        "true",
        where=_ROWS,
        instead="columns",
    ),
    Option(
        "walLocation",
        read.location,
        "Folder or URL, the query's own, that driver and executors reach: the received messages. Back it up with "
        "the checkpoint.",
        required=_STREAM,
    ),
    Option(
        "storageOptions",
        read.json_object,
        'A JSON object for fsspec\'s file system of `walLocation`, such as `{"anon": true}`.',
    ),
    Option(
        "receiver",
        read.choice("driver", "executor"),
        "What receives: one long-lived process on the driver's host, or the executors' tasks.",
        "driver",
    ),
    Option(
        "lanes",
        read.whole(1, 64),
        "Processes that receive on the driver's host.",
        "1",
        receiver="driver",
        like="numPartitions",
    ),
    Option("numPartitions", read.whole(1, 10_000), "Tasks of a batch.", "1"),
    Option(
        "maxMessagesPerBatch",
        read.whole(1, _MANY),
        "Most messages of one batch.",
        "50000",
        alias="maxOffsetsPerTrigger",
    ),
    Option(
        "minMessagesPerBatch",
        read.whole(0, _MANY),
        "Messages that a batch waits for, `maxTriggerDelay` at most; an `availableNow` query does not wait.",
        "0",
        alias="minOffsetsPerTrigger",
    ),
    Option(
        "maxTriggerDelay",
        read.duration(0.001, 86400),
        "With `minMessagesPerBatch`: how long after the last batch one begins with fewer messages. The first batch of "
        "a query does not wait.",
        "15 min",
    ),
    Option(
        "maxBytesPerBatch",
        read.size(1, _MOST_BYTES),
        "Most bytes of the messages of one batch, before compression; a batch has one segment at least.",
        "1 GiB",
    ),
    Option(
        "segmentBytes",
        read.size(1, _MOST_SEGMENT),
        "Bytes of messages at which a transaction and its segment end; one message that is larger stands alone. What "
        "the source's process needs of memory grows with it.",
        "64 MiB",
    ),
    Option(
        "maxPendingBytes",
        read.size(1, _MOST_BYTES),
        "Bytes of messages received ahead of Spark at which receiving pauses (`receiver=executor`: most of a batch).",
        "2 GiB",
    ),
    Option(
        "segmentRows",
        read.whole(1, 1_000_000),
        "Most messages of one transaction and segment; at most `maxMessagesPerBatch` and `maxPendingRows`.",
        "10000",
        receiver="driver",
        like="maxMessagesPerBatch",
    ),
    Option(
        "maxPendingRows",
        read.whole(1, _MANY),
        "Messages received ahead of Spark at which receiving pauses.",
        "200000",
        receiver="driver",
    ),
    Option(
        "linger",
        read.duration(0, 3600),
        "How long a transaction stays open for more messages after its first while Spark is busy; when Spark asks for "
        "rows, it ends at once.",
        "5 s",
        receiver="driver",
        like="receiveTimeout",
    ),
    Option(
        "receiveTimeout",
        read.duration(0.001, 3600),
        "How long a task waits for more messages after its first; then it ends when its queue is empty.",
        "100 ms",
        receiver="executor",
        like="linger",
    ),
    Option(
        "maxReceiveTime",
        read.duration(0.001, 86400),
        "How long a task receives at most, while its queue has a backlog.",
        "5 s",
        receiver="executor",
    ),
    Option(
        "latencyTarget",
        read.duration(0.001, 3600),
        "How long a task receives at most, while it keeps up with its queue; one with a backlog has `maxReceiveTime`.",
        "500 ms",
        receiver="executor",
    ),
    Option(
        "pollInterval",
        read.duration(0.01, 3600),
        "How long the source waits for a first message when Spark asks for the latest offset.",
        "1 s",
    ),
    Option(
        "prefetch",
        read.whole(1, 32767),
        "Messages that the broker sends ahead of their acknowledgement. Without it: what suits the protocol and the "
        "broker, about 16 MiB of large ones.",
    ),
    Option("ackChunk", read.whole(1, 10_000), "Messages taken from the session at a time.", "64"),
    Option("compression", read.choice("zstd", "lz4", "none"), "The compression of the segments.", "zstd"),
    Option(
        "dedupe",
        read.choice("inDoubt", "off"),
        "`inDoubt`: a message redelivered after a commit whose outcome was lost gives no second row. `off`: it may, "
        "and none received so is recognised later; no digests are made.",
        "inDoubt",
    ),
    Option(
        "dedupeWindow",
        read.duration(60),
        "How long the ids and digests of such messages are remembered; make it longer than the broker takes to notice "
        "a dead client.",
        "24 h",
    ),
    Option("retainBatches", read.whole(1, 100_000), "Committed batches whose segments are kept.", "1"),
    Option(
        "failOnDataLoss",
        read.flag,
        "Fail with `DataLossError` when a segment is gone or damaged; false: log it, count it, go on without it.",
        "true",
    ),
    Option(
        "availableNowIdle",
        read.duration(0.01, 3600),
        "An `availableNow` query ends when nothing came for so long.",
        "1 s",
    ),
    Option("availableNowMaxTime", read.duration(0.1), "An `availableNow` query ends after so long at the latest."),
    Option(
        "badMessages",
        read.choice("fail", "deadLetter", "permissive", "drop"),
        "A message that cannot become a row fails the query, is dead-lettered, becomes a row with `_error`, or is "
        "dropped. The default is `fail` for a query that reads the dead-letter queue itself.",
        "deadLetter",
    ),
    Option(
        "converter",
        read.converter,
        "`module:function`, importable where messages are received: takes a Message, returns the body (bytes, str or "
        "None).",
    ),
    Option(
        "deadLetterQueue",
        read.queue_name,
        "Where dead letters go. Without it: messages that were delivered too often to the broker's own dead-letter "
        f"queue, copies of bad messages to `{DEFAULT_DEAD_LETTER_QUEUE}`.",
    ),
    Option(
        "application",
        read.application,
        "Name and release of the application, as `shop 2.4`, for the passports of its dead letters.",
    ),
    Option(
        "maxRedeliveries",
        read.whole(-1, _MANY),
        "Redeliveries after which a message is dead-lettered; -1: no limit.",
        "-1",
    ),
    Option("redeliveryDelay", read.duration(), "Before a message is redelivered.", "1 s"),
    Option(
        "maxBatchAttempts",
        read.whole(0, 1_000_000),
        "How often one batch is tried, restarts of the query included; 0: no limit.",
        "0",
    ),
    Option(
        "onBatchFailure",
        read.choice("fail", "deadLetter"),
        "After `maxBatchAttempts`: every start fails, or the batch's messages are dead-lettered and the query goes on.",
        "fail",
    ),
    Option(
        "persistent",
        read.flag,
        "Whether the broker keeps a message through a restart, where its row does not say.",
        "true",
        where=(WRITE,),
    ),
    Option("priority", read.whole(0, 9), "0 to 9, where the row does not say.", "4", where=(WRITE,)),
    Option(
        "ttl",
        read.duration(),
        "How long until a message expires, where its row does not say; 0: never.",
        "0",
        where=(WRITE,),
    ),
    Option(
        "jobId",
        read.string,
        "Names a batch write, so that its repetition sends the same ids for duplicate detection; a stream needs none.",
        where=(WRITE,),
    ),
    Option(
        "dedupe", read.flag, "Send an id with each message, for brokers that drop duplicates.", "true", where=(WRITE,)
    ),
    Option(
        "maxReconnectTime",
        read.duration(0),
        "How long the source or sink tries to reconnect, with back-off, before the query fails.",
        "5 min",
        where=(READ_STREAM, WRITE),
    ),
)


def options_of(where: str) -> dict[str, Option]:
    """The options of `READ_STREAM`, `READ` or `WRITE`, by their names."""
    return {option.name: option for option in OPTIONS if where in option.where}
