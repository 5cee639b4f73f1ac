"""Every option of the data source `jms`: its name, default, meaning, and where it applies.

Parsing (`redelivery.spark.options`) and the documentation's table read this. Spark hands names over in lower case and
values as texts; a name here is as the user knows it, and the field of the parsed options is the same in snake case.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from redelivery.spark import option_values as read

READ_STREAM: Final = "readStream"
READ: Final = "read"
WRITE: Final = "write"
_ALL: Final = (READ_STREAM, READ, WRITE)
_STREAM: Final = (READ_STREAM,)
_ROWS: Final = (READ_STREAM, READ)
_MANY: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Option:
    """One option.

    ``default``: as the user would write it; None: there is none.
    ``where``: of `READ_STREAM`, `READ` (browse) and `WRITE` (batch and stream), those that have it.
    ``required``: of the same, those that cannot do without it.
    ``receiver``: the only receiver that looks at it, None for both.
    ``alias``: another name for it.
    """

    name: str
    parse: read.Parser
    meaning: str
    default: str | None = None
    where: tuple[str, ...] = _STREAM
    required: tuple[str, ...] = ()
    receiver: str | None = None
    alias: str | None = None

    @property
    def field(self) -> str:
        """Its name in snake case."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", self.name).lower()


OPTIONS: Final = (
    Option(
        "url",
        read.url,
        "The broker: `stomp://`, `stomp+ssl://`, `amqp://` or `amqps://`, host, port.",
        where=_ALL,
        required=_ALL,
    ),
    Option(
        "destination",
        read.queue,
        'The queue to read, as `orders` or `queue://orders`; `load("orders")` gives it too.',
        where=_ROWS,
        required=_ROWS,
        alias="path",
    ),
    Option(
        "destination",
        read.target,
        "The queue or `topic://…` to send to, whatever a column `destination` says; without it that column is needed.",
        where=(WRITE,),
        alias="path",
    ),
    Option("user", read.text, "Who logs in.", where=_ALL),
    Option("password", read.secret, "With what; no log, error or repr shows it.", where=_ALL),
    Option("dialect", read.dialect, "Which broker it is, where it does not say so itself.", "auto", where=_ALL),
    Option("selector", read.text, "A JMS selector: only messages that it matches.", where=_ROWS),
    Option(
        "propertiesType",
        read.choice("string", "variant"),
        "Type of the values in the column `properties`; `variant` keeps JMS's types.",
        "string",
        where=_ROWS,
    ),
    Option(
        "walLocation",
        read.location,
        "Folder or URL, the query's own, that driver and executors reach: the received messages. As precious as the "
        "checkpoint.",
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
        "Who receives: one long-lived process on the driver's host, or the executors' tasks.",
        "driver",
    ),
    Option("lanes", read.whole(1, 64), "Processes that receive on the driver's host.", "1", receiver="driver"),
    Option("numPartitions", read.whole(1, 10_000), "Tasks of a batch.", "1"),
    Option(
        "maxMessagesPerBatch",
        read.whole(1, _MANY),
        "Most messages of one batch.",
        "50000",
        alias="maxOffsetsPerTrigger",
    ),
    Option(
        "segmentRows",
        read.whole(1, 1_000_000),
        "Most messages of one transaction and segment; at most `maxMessagesPerBatch` and `maxPendingRows`.",
        "10000",
        receiver="driver",
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
        "How long a segment waits for more messages after its first.",
        "100 ms",
        receiver="driver",
    ),
    Option(
        "receiveTimeout",
        read.duration(0.001, 3600),
        "How long a task waits for the next message before its part of the batch ends.",
        "100 ms",
        receiver="executor",
    ),
    Option(
        "maxReceiveTime",
        read.duration(0.001, 86400),
        "How long a task receives at most.",
        "5 s",
        receiver="executor",
    ),
    Option("pollInterval", read.duration(0.01, 3600), "How long Spark's question for news waits for some.", "1 s"),
    Option("prefetch", read.whole(1, 32767), "Messages that the broker sends ahead of their acknowledgement.", "200"),
    Option("ackChunk", read.whole(1, 10_000), "Messages taken from the session at a time.", "64"),
    Option("compression", read.choice("zstd", "lz4", "none"), "Of the segments.", "zstd"),
    Option(
        "dedupe",
        read.choice("inDoubt", "off"),
        "`inDoubt`: a message delivered again after a commit whose outcome was lost gives no second row.",
        "inDoubt",
    ),
    Option(
        "dedupeWindow",
        read.duration(60),
        "How long such ids are remembered; longer than the broker takes to notice a dead client.",
        "24 h",
    ),
    Option("retainBatches", read.whole(1, 100_000), "Committed batches whose segments are kept.", "1"),
    Option("failOnDataLoss", read.flag, "Fail when a planned segment is gone; false: go on without it.", "true"),
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
        "What cannot be a row: fails the query, is dead-lettered, is a row with `_error`, or is dropped. The default "
        "of a query that reads the dead-letter queue itself is `fail`.",
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
        "Where dead letters go. Without it: what was delivered too often to the broker's own, copies of bad messages "
        "to `ActiveMQ.DLQ`.",
    ),
    Option(
        "maxRedeliveries",
        read.whole(-1, _MANY),
        "Redeliveries after which a message is dead-lettered; -1: no limit.",
        "-1",
    ),
    Option("redeliveryDelay", read.duration(), "Before a message is delivered again.", "1 s"),
    Option(
        "maxBatchAttempts",
        read.whole(0, 1_000_000),
        "How often one batch is tried, restarts of the query included; 0: no limit.",
        "0",
    ),
    Option(
        "onBatchFailure",
        read.choice("fail", "deadLetter"),
        "After that: every start fails, or the batch's messages are dead-lettered and the query goes on.",
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
        read.text,
        "Names a batch write, so that its repetition sends the same ids for duplicate detection; a stream needs none.",
        where=(WRITE,),
    ),
    Option(
        "dedupe", read.flag, "Send an id with each message, for brokers that drop duplicates.", "true", where=(WRITE,)
    ),
    Option(
        "maxReconnectTime",
        read.duration(0),
        "How long a broker that is gone is tried again, with back-off, before the query fails.",
        "5 min",
        where=(READ_STREAM, WRITE),
    ),
)


def options_of(where: str) -> dict[str, Option]:
    """The options of `READ_STREAM`, `READ` or `WRITE`, by their names."""
    return {option.name: option for option in OPTIONS if where in option.where}


def documentation(where: str) -> list[tuple[str, str, str]]:
    """Name, default (``required`` or ``none`` where there is none) and meaning of each option, for a table."""
    rows = []
    for option in options_of(where).values():
        default = (
            "required" if where in option.required else "none" if option.default is None else f"`{option.default}`"
        )
        name = f"`{option.name}`" + (f" (or `{option.alias}`)" if option.alias else "")
        meaning = f"`receiver={option.receiver}`: {option.meaning}" if option.receiver else option.meaning
        rows.append((name, default, meaning))
    return rows
