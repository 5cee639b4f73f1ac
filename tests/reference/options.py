"""Every option, in one table: of connections, URLs, consumers, producers, workers, policies, Spark and commands."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple

import typer
from tests.reference.docstrings import default_in, entries, inline, parameters_of, text_of

import redelivery
from redelivery.broker import EmbeddedBroker
from redelivery.cli.app import app
from redelivery.client.arguments import ConsumerKeywords, ProducerKeywords
from redelivery.client.containers.settings import ContainerKeywords
from redelivery.client.options import ConnectionKeywords
from redelivery.model.content.headers import SendKeywords
from redelivery.policies.activemq import reconnect_names, redelivery_names
from redelivery.policies.prefetch import BEAN as PREFETCH
from redelivery.spark.options import table as spark
from redelivery.spark.options import values
from redelivery.transports.stomp.codec.reader import MAX_BODY
from redelivery.web import mount

MANY: Final = 4  # commands that have an option, beyond which they are not listed
# Units that the type does not say.
UNITS: Final = {
    **dict.fromkeys(("prefetch", "queue", "topic", "durable_topic", "browser", "ackChunk"), "messages"),
    **dict.fromkeys(("maximum_redeliveries", "maximumRedeliveries", "maxRedeliveries"), "redeliveries"),
    **dict.fromkeys(("max_delivery_attempts",), "deliveries"),
    **dict.fromkeys(("collision_avoidance_percent", "collisionAvoidancePercent"), "%"),
    **dict.fromkeys(("maximum_attempts", "startup_maximum_attempts", "warn_after_attempts"), "attempts"),
    **dict.fromkeys(("maxReconnectAttempts", "startupMaxReconnectAttempts", "warnAfterReconnectAttempts"), "attempts"),
    **dict.fromkeys(("--limit", "--canary", "max_messages_per_task", "outage_after", "segmentRows"), "messages"),
    **dict.fromkeys(("maxPendingRows", "maxMessagesPerBatch", "minMessagesPerBatch", "report_interval"), "messages"),
    **dict.fromkeys(("maxBatchAttempts",), "attempts"),
    **dict.fromkeys(("retainBatches",), "batches"),
    **dict.fromkeys(("numPartitions",), "tasks"),
    **dict.fromkeys(("lanes",), "processes"),
    **dict.fromkeys(("concurrency",), "workers"),
    **dict.fromkeys(("amqp.maxFrameSize", "wireFormat.maxFrameSize", "wireFormat.maxDataLength"), "bytes"),
    **dict.fromkeys(("--connect-timeout", "--drain-timeout", "--canary-wait", "--timeout"), "s"),
    "--rate": "letters/s",
}
POLICIES: Final = (
    "RedeliveryPolicy",
    "ReconnectPolicy",
    "PrefetchPolicy",
    "AddressSettings",
    "BrokerDeadLetterStrategy",
    "SharedDeadLetterStrategy",
    "IndividualDeadLetterStrategy",
    "DiscardingDeadLetterStrategy",
)
INTERNAL: Final = {"fields_set", "pre_dispatch_check_set", "given_wait", "given_stop", "destination"}


class Row(NamedTuple):
    """One row of the table."""

    option: str
    of: str
    type: str
    unit: str
    default: str
    meaning: str


def rows() -> list[Row]:
    """All of them."""
    return [*_calls(), *_urls(), *_policies(), *_spark(), *_commands()]


def page() -> str:
    """docs/reference/options.md."""
    lines = [
        "# All options\n",
        "Written by `scripts/reference` from the code. A duration of the Python API is a number of seconds or a",
        "`timedelta`; one in a URL is in milliseconds, as ActiveMQ's; one of Spark has its unit behind it. The",
        "names of other clients are answered with the right one.\n",
        "| option | of | type | unit | default | meaning |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows():
        cells = (f"`{row.option}`", row.of, row.type and f"`{row.type}`", row.unit, row.default and f"`{row.default}`")
        lines.append("| " + " | ".join(each.replace("|", "\\|") for each in (*cells, row.meaning)) + " |")
    return "\n".join(lines) + "\n"


def _calls() -> Iterator[Row]:
    connect = entries(text_of(ConnectionKeywords), _keys(ConnectionKeywords))
    consumer = entries(text_of(ConsumerKeywords), _keys(ConsumerKeywords))
    producer = entries(text_of(ProducerKeywords), _keys(ProducerKeywords))
    sending = entries(text_of(SendKeywords), _keys(SendKeywords))
    worker = entries(text_of(ContainerKeywords), _keys(ContainerKeywords))
    yield from _of(
        redelivery.connect,
        "`connect`",
        {**connect, "start": "False: it sends, but does not deliver: JMS's stopped connection"},
    )
    consumer |= {"body_type": entries(text_of(redelivery.Session.consumer))["body_type"]}
    yield from _of(redelivery.Session.consumer, "`Session.consumer`", consumer)
    yield from _of(redelivery.Session.producer, "`Session.producer`", producer)
    yield from _of(redelivery.Producer.send, "`Producer.send`", sending)
    yield from _of(redelivery.Connection.listener_container, "`listener_container`, `App.listener`", worker)
    for function, name in (
        (redelivery.App.run, "`App.run`"),
        (EmbeddedBroker, "`EmbeddedBroker`"),
        (mount, "`redelivery.web.mount`"),
    ):
        yield from _of(function, name, entries(text_of(function)))


def _keys(keywords: Any) -> frozenset[str]:
    return frozenset(keywords.__annotations__)


def _of(function: Any, of: str, meanings: Mapping[str, str], text: str = "") -> Iterator[Row]:
    for each in parameters_of(function):
        if (each.kind is not inspect.Parameter.KEYWORD_ONLY and of.startswith("`")) or each.name in INTERNAL:
            continue
        kind = str(each.annotation)
        default = default_in(text, each.name) if each.default is None else None
        shown = default or ("" if each.default is inspect.Parameter.empty else _shown(each.default))
        meaning = meanings.get(each.name, "")
        yield Row(
            each.name, of, kind.replace("Seconds", "float | timedelta"), _unit(each.name, kind), shown, inline(meaning)
        )


def _shown(value: object) -> str:
    text = (
        f"{type(value).__name__}.{value.name}" if isinstance(value, Enum) else re.sub(r"^<.*", "not given", repr(value))
    )
    return text.replace("'", '"')


def _unit(name: str, kind: str) -> str:
    return "s" if "timedelta" in kind or "Seconds" in kind else UNITS.get(name, "")


URLS: Final = (  # what no table of the code has
    Row("jms.nonBlockingRedelivery", "URL", "true or false", "", "false", "`non_blocking_redelivery` of `connect`"),
    Row("jms.clientID", "URL", "str", "", "", "`client_id` of `connect`"),
    Row("jms.userName", "URL", "str", "", "", "`username` of `connect`"),
    Row("jms.password", "URL", "str", "", "", "`password` of `connect`"),
    Row("wireFormat.host", "URL, `stomp:`", "str", "", "the host", "the virtual host: the header `host` of CONNECT"),
    Row("wireFormat.maxDataLength", "URL, `stomp:`", "int", "bytes", str(MAX_BODY), "the longest body that is taken"),
    Row("wireFormat.maxFrameSize", "URL, `stomp:`", "int", "bytes", "none", "the longest frame that is taken"),
    Row("amqp.vhost", "URL, `amqp:`", "str", "", "the host", "the virtual host: the host name of `open`"),
    Row("amqp.maxFrameSize", "URL, `amqp:`", "int", "bytes", "1048576", "the largest frame that is taken"),
    Row("amqp.idleTimeout", "URL, `amqp:`", "int", "ms", "heartbeat", "how long the broker may be silent"),
    Row(
        "amqp.saslMechanisms", "URL, `amqp:`", "str", "", "by the broker", "those that may be used, with commas between"
    ),
    Row("create", "URL, `vm:`", "true or false", "", "true", "false: the broker must be there already"),
    Row("store", "URL, `vm:`", "str", "", "", "the file that keeps the messages; without it they end with the broker"),
    Row("priorityURIs", "URL, `failover:`", "URLs", "", "the first", "those that `priorityBackup` prefers"),
    Row("nested.*", "URL, `failover:`", "", "", "", "an option of each URL of the list"),
    Row(
        "consumer.exclusive",
        "name of a queue",
        "true or false",
        "",
        "false",
        "one consumer has all messages: `orders?consumer.exclusive=true`",
    ),
    Row(
        "declare",
        "name of a queue",
        "true or false",
        "",
        "true",
        "false: the queue must be there already: `orders?declare=false`",
    ),
)


def _urls() -> Iterator[Row]:
    own = {(row.of.partition("]")[0][1:], row.option): row for row in _policies()}
    for name, (field, _) in redelivery_names.BEAN.items():
        yield _bean(f"jms.redeliveryPolicy.{name}", "URL", own["RedeliveryPolicy", field])
    for name, field in PREFETCH.items():
        meaning = (
            f"`{field}` of [PrefetchPolicy](policies.md#prefetchpolicy)"
            if field
            else "all four, where nothing nearer is named"
        )
        yield Row(f"jms.prefetchPolicy.{name}", "URL", "int", "messages", "", meaning)
    for name, (field, _) in reconnect_names._BEAN.items():
        yield _bean(name, "URL, `failover:`", own["ReconnectPolicy", field])
    yield from URLS


def _bean(name: str, of: str, row: Row) -> Row:
    """The same in ActiveMQ's spelling, whose durations are milliseconds."""
    ms = row.unit == "s"
    default = row.default
    if ms and re.fullmatch(r"[\d.]+", default):
        default = f"{float(default) * 1000:g}"
    kind = "int" if ms else row.type.replace("bool | None", "bool").replace("bool", "true or false")
    named = {"True": "true", "False": "false", "not given": "false", "None": "-1" if ms else "false"}
    return Row(name, of, kind, "ms" if ms else row.unit, named.get(default, default), f"`{row.option}` of {row.of}")


def _policies() -> Iterator[Row]:
    for name in POLICIES:
        kind = getattr(redelivery, name)
        inherited = [text_of(base) for base in kind.__mro__ if base.__module__.startswith("redelivery.")]
        fields = frozenset(each.name for each in parameters_of(kind))
        meanings: dict[str, str] = {}
        for text in inherited:
            for field in fields:
                found = entries(text, fields).get(field) or _sentence(text, field)
                if found:
                    meanings.setdefault(field, found)
        yield from _of(kind, f"[{name}](policies.md#{name.lower()})", meanings, "\n".join(inherited))


def _sentence(text: str, name: str) -> str:
    """The entry or paragraph that speaks of a field among others."""
    for paragraph in re.split(r"\n(?=``)|\n\n", text):
        if f"``{name}``" in paragraph:
            return " ".join(paragraph.split())
    return ""


def _spark() -> Iterator[Row]:
    kinds: dict[object, str] = {values.flag: "true or false", values.string: "str"}
    for option in spark.OPTIONS:
        kind = getattr(option.parse, "__qualname__", "").partition(".")[0]
        shown = kinds.get(option.parse) or {
            "duration": "duration",
            "size": "size",
            "whole": "int",
            "choice": "word",
        }.get(kind, "str")
        unit = {"duration": "s", "size": "bytes"}.get(kind) or UNITS.get(option.name, "")
        name = option.name + (f" or {option.alias}" if option.alias else "")
        default = option.default or ("required" if option.required else "")
        of = "Spark: " + ", ".join(f"`{each}`" for each in option.where)
        meaning = f"`receiver={option.receiver}`: {option.meaning}" if option.receiver else option.meaning
        yield Row(name, of, shown, unit, default, meaning)


def commands() -> Iterator[tuple[str, Any]]:
    """Each command by its words, from typer's tree."""

    def below(words: str, command: Any) -> Iterator[tuple[str, Any]]:
        yield words, command
        for name, each in getattr(command, "commands", {}).items():
            yield from below(f"{words} {name}", each)

    yield from below("redelivery", typer.main.get_command(app))


def is_option(parameter: Any) -> bool:
    """Say whether it is one, and not an argument."""
    return str(parameter.opts[0]).startswith("-") and not getattr(parameter, "hidden", False)


def option_row(parameter: Any, of: str) -> Row:
    """An option of a command."""
    kind = (
        "flag"
        if parameter.is_flag
        else parameter.metavar or {int: "INTEGER", float: "NUMBER"}.get(type(parameter.default), "TEXT")
    )
    default = parameter.default
    shown = "" if default is None or default is False or callable(default) or default == () else str(default)
    option = " or ".join([*parameter.opts, *parameter.secondary_opts])
    return Row(option, of, kind, UNITS.get(parameter.opts[0], ""), shown, inline(parameter.help or ""))


def _commands() -> Iterator[Row]:
    found: dict[Row, list[str]] = {}
    for words, command in commands():
        for each in filter(is_option, command.params):
            if "--help" not in each.opts:
                found.setdefault(option_row(each, ""), []).append(words)
    for row, of in found.items():
        shown = ", ".join(f"`{words}`" for words in of) if len(of) <= MANY else f"{len(of)} [commands](commands.md)"
        yield row._replace(of=shown)
