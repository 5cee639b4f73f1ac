"""The options of a query, checked before anything is reached: what is wrong is a ConfigError that names the option."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, Self

from redelivery.model.destinations import Destination, Queue, SubscriptionName
from redelivery.model.errors import ConfigError
from redelivery.policies.dead_letters import DEFAULT_DEAD_LETTER_QUEUE
from redelivery.policies.destinations.patterns import matches
from redelivery.spark.options.names import unknown_name
from redelivery.spark.options.subscriptions import check_topics, identity
from redelivery.spark.options.table import READ, READ_STREAM, WRITE, Option, options_of
from redelivery.spark.options.values import brokers, masked, shown_size
from redelivery.spark.rows.column_names import COLUMNS, PROPERTIES

_HIDDEN: Final = frozenset(("password", "storage_options"))  # file systems are given their keys in the latter
_ENCRYPTED: Final = {"stomp": "stomp+ssl", "amqp": "amqps"}
_SPARK: Final = frozenset(("checkpointlocation", "queryname"))  # a streaming write passes Spark's own options too
_ORDERED: Final = (  # the first may not be more than the second
    ("segmentRows", "maxMessagesPerBatch"),
    ("segmentRows", "maxPendingRows"),
    ("segmentBytes", "maxBytesPerBatch"),
    ("segmentBytes", "maxPendingBytes"),
    ("numPartitions", "maxMessagesPerBatch"),
    ("minMessagesPerBatch", "maxMessagesPerBatch"),
    ("receiveTimeout", "maxReceiveTime"),
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BrokerOptions:
    """The options of all three: which broker, and who logs in. Pickled to executors; no password is in the repr."""

    url: str
    username: str | None
    password: str | None
    password_file: str | None
    password_env: str | None
    tls_ca: str | None
    tls_cert: str | None
    tls_key: str | None
    dialect: str

    @property
    def masked_url(self) -> str:
        """The URL, without a password."""
        return masked(self.url)

    def __repr__(self) -> str:
        shown = []
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name == "url":
                value = self.masked_url
            elif each.name in _HIDDEN and value:
                value = "****"
            shown.append(f"{each.name}={value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BrowseOptions(BrokerOptions):
    """The options of ``spark.read``. ``destinations``: queues; none is a pattern."""

    destinations: tuple[Destination, ...]
    selector: str | None
    properties_type: Literal["string", "variant"]
    columns: tuple[str, ...]

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> Self:
        """From Spark's options. Raises ConfigError."""
        values = _Given(READ, options).sources
        for each in values["destinations"]:
            if each.is_pattern:
                raise ConfigError(
                    f"{each} is a pattern, and a browser looks at one queue: write the names, with commas between "
                    "them, as destinations"
                )
        return cls(**values)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SinkOptions(BrokerOptions):
    """The options of ``df.write`` and ``df.writeStream``. ``ttl``: seconds, 0 for never; ``max_reconnect_time``:
    seconds.

    ``destination``: None where a column must name it.
    """

    destination: Destination | None
    persistent: bool
    priority: int
    ttl: float
    job_id: str | None
    dedupe: bool
    max_reconnect_time: float

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> Self:
        """From Spark's options. Raises ConfigError."""
        given = _Given(WRITE, {name: value for name, value in options.items() if name.lower() not in _SPARK})
        if "jobId" in given and not given.values["dedupe"]:
            raise ConfigError("jobId has no effect with dedupe=false: it is a part of the id for duplicate detection")
        return cls(**given.values)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SourceOptions(BrokerOptions):
    """The options of ``spark.readStream``; every duration in seconds.

    ``destinations``: what is consumed, at least one. ``dead_letter_queue``: a queue's name, None for the broker's own
    (copies: ``ActiveMQ.DLQ``). ``available_now_max_time``: None for no limit. ``max_redeliveries``: -1 for no limit.
    """

    destinations: tuple[Destination, ...]
    subscription: str | None
    shared: bool
    client_id: str | None
    selector: str | None
    properties_type: Literal["string", "variant"]
    columns: tuple[str, ...]
    wal_location: str
    storage_options: dict[str, Any] | None
    receiver: Literal["driver", "executor"]
    lanes: int
    num_partitions: int
    max_messages_per_batch: int
    min_messages_per_batch: int
    max_trigger_delay: float
    max_bytes_per_batch: int
    segment_bytes: int
    max_pending_bytes: int
    segment_rows: int
    max_pending_rows: int
    linger: float
    receive_timeout: float
    max_receive_time: float
    latency_target: float
    poll_interval: float
    prefetch: int | None
    ack_chunk: int
    compression: Literal["zstd", "lz4", "none"]
    dedupe: Literal["inDoubt", "off"]
    dedupe_window: float
    retain_batches: int
    fail_on_data_loss: bool
    available_now_idle: float
    available_now_max_time: float | None
    bad_messages: Literal["fail", "deadLetter", "permissive", "drop"]
    converter: str | None
    dead_letter_queue: str | None
    application: str | None
    max_redeliveries: int
    redelivery_delay: float
    max_batch_attempts: int
    on_batch_failure: Literal["fail", "deadLetter"]
    max_reconnect_time: float

    @property
    def source(self) -> str:
        """The destinations, for texts."""
        return ", ".join(map(str, self.destinations))

    @property
    def several(self) -> bool:
        """True: messages of more than one destination come."""
        return len(self.destinations) > 1 or self.destinations[0].is_pattern

    @property
    def subscription_name(self) -> SubscriptionName | None:
        """The subscription by which a topic is consumed."""
        if self.subscription is None:
            return None
        return SubscriptionName(self.subscription, durable=True, shared=self.shared)

    @property
    def identity(self) -> dict[str, Any]:
        """The facts that `walLocation` remembers, see `redelivery.spark.log.identity`."""
        return identity(self)

    @property
    def errors(self) -> bool:
        """True: rows have the column ``_error``."""
        return self.bad_messages == "permissive"

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> Self:
        """From Spark's options. Raises ConfigError."""
        given = _Given(READ_STREAM, options)
        values = given.sources
        if values["subscription"] is not None and not values["shared"]:
            values["client_id"] = values["client_id"] or values["subscription"]
        if "segmentRows" not in given:
            # only what was asked for can contradict
            least = min(values["max_messages_per_batch"], values["max_pending_rows"])
            # what a batch waits for is to be seen when it is there, and not after `linger`
            least = min(least, values["min_messages_per_batch"] or least)
            values["segment_rows"] = min(values["segment_rows"], least)
        if "segmentBytes" not in given:
            least = min(values["max_bytes_per_batch"], values["max_pending_bytes"])
            values["segment_bytes"] = min(values["segment_bytes"], least)
        if "maxPendingRows" not in given:
            values["max_pending_rows"] = max(values["max_pending_rows"], values["max_messages_per_batch"])
        if "badMessages" not in given and _takes(values["destinations"], _dead_letters(values["dead_letter_queue"])):
            values["bad_messages"] = "fail"  # its own dead letters would come back to it for ever
        found = cls(**values)
        _check_source(found, given)
        return found


class _Given:
    """The options that were given: names looked up, values parsed; ``values`` by field, with the defaults."""

    def __init__(self, where: str, options: Mapping[str, str]) -> None:
        self._table = options_of(where)
        self._texts: dict[str, str] = {}
        self._names: dict[str, str] = {}  # as it was given, alias or not
        known = {
            name.lower(): option for option in self._table.values() for name in (option.name, option.alias) if name
        }
        for name, text in options.items():
            option = known.get(name.lower())
            if option is None:
                raise ConfigError(unknown_name(name, where))
            self._take(option, name, text)
        for option in self._table.values():
            instead = option.instead is not None and option.instead in self
            if instead and option.name in self:
                raise ConfigError(
                    f"{self._names[option.name]} and {option.instead} are both given: leave one of them out"
                )
            if where in option.required and option.name not in self and not instead:
                raise ConfigError(f"{option.name} is missing: {option.meaning}")
        self.values: dict[str, Any] = {option.field: self._parsed(option) for option in self._table.values()}
        self._check_login()

    def __contains__(self, name: str) -> bool:
        return name in self._texts

    @property
    def sources(self) -> dict[str, Any]:
        """``values``, with all that is read in ``destinations``, and all that is shown of it in ``columns``."""
        values = dict(self.values)
        one, properties = values.pop("destination"), values.pop("include_properties")
        shown = values["columns"] or tuple(name for name in COLUMNS if properties or name != PROPERTIES)
        return values | {"destinations": values["destinations"] or (one,), "columns": shown}

    def _take(self, option: Option, name: str, text: str) -> None:
        if not isinstance(text, str):
            raise ConfigError(f"{option.name} must be a str, not {type(text).__name__}")
        shown = option.alias if option.alias and name.lower() == option.alias.lower() else option.name
        before = self._texts.get(option.name)
        if before is not None and before != text:
            raise ConfigError(
                f"{shown}={text!r} and {self._names[option.name]}={before!r} are the same option: give one of them"
            )
        self._texts[option.name], self._names[option.name] = text, shown

    def _parsed(self, option: Option) -> Any:
        text = self._texts.get(option.name, option.default)
        return None if text is None else option.parse(self._names.get(option.name, option.name), text)

    def _check_login(self) -> None:
        urls = brokers(self.values["url"])
        for name in ("username", "password"):
            if name in self and any(getattr(each, name) is not None for each in urls):
                raise ConfigError(f"{name} is given twice, as an option and in the url: leave one of them out")
        passwords = [name for name in ("password", "passwordFile", "passwordEnv") if name in self]
        if len(passwords) > 1 or (passwords and any(each.password is not None for each in urls)):
            others = passwords[1:] or ["the url"]
            raise ConfigError(f"the password is given by {passwords[0]} and by {others[0]}: leave one of them out")
        if passwords and "username" not in self and any(each.username is None for each in urls):
            raise ConfigError(f"{passwords[0]} is given without username: add the option username")
        if "tlsKey" in self and "tlsCert" not in self:
            raise ConfigError("tlsKey has no effect without tlsCert: add the file of the certificate")
        plain = [each.scheme for each in urls if each.scheme in _ENCRYPTED]
        if plain and any(name in self for name in ("tlsCa", "tlsCert")):
            raise ConfigError(
                f"tlsCa and tlsCert have no effect with {plain[0]}://, which is not encrypted: write "
                f"{_ENCRYPTED[plain[0]]}:// and the port of the broker's TLS listener"
            )


def _check_source(options: SourceOptions, given: _Given) -> None:
    """Refuse options that contradict each other. Raises ConfigError."""
    table = options_of(READ_STREAM)
    for option in table.values():
        if option.name in given and option.receiver not in (None, options.receiver):
            instead = f"use {option.like}, or " if option.like else ""
            raise ConfigError(
                f"{option.name} is for receiver={option.receiver}, and has no effect with receiver={options.receiver}: "
                f"{instead}leave it out"
            )
    check_topics(options, client_id="clientId" in given)
    for small, large in _ORDERED:
        left, right = (getattr(options, table[name].field) for name in (small, large))
        if left > right and table[small].receiver in (None, options.receiver):
            left, right = (shown_size(each) if "Bytes" in small else each for each in (left, right))
            raise ConfigError(f"{small}={left} is more than {large}={right}: lower it, or raise {large}")
    if options.storage_options is not None and options.wal_location.startswith(("/", "file:")):
        raise ConfigError(
            f"storageOptions has no effect with walLocation={options.wal_location!r}, a local folder: leave it out"
        )
    if options.receiver == "driver" and options.min_messages_per_batch > options.max_pending_rows:
        raise ConfigError(
            f"minMessagesPerBatch={options.min_messages_per_batch} is more than maxPendingRows="
            f"{options.max_pending_rows}, at which receiving pauses: lower it, or raise maxPendingRows"
        )
    if not options.min_messages_per_batch and "maxTriggerDelay" in given:
        raise ConfigError("maxTriggerDelay has no effect without minMessagesPerBatch: add that, or leave it out")
    if options.dedupe == "off" and "dedupeWindow" in given:
        raise ConfigError("dedupeWindow has no effect with dedupe=off: leave it out, or use dedupe=inDoubt")
    if options.on_batch_failure == "deadLetter" and not options.max_batch_attempts:
        raise ConfigError("onBatchFailure=deadLetter needs maxBatchAttempts, such as 3: after how many tries?")
    _check_dead_letters(options, given)


def _check_dead_letters(options: SourceOptions, given: _Given) -> None:
    in_url = any(each.redelivery_policy is not None for each in brokers(options.url))
    for name in ("maxRedeliveries", "redeliveryDelay"):
        if in_url and name in given:
            raise ConfigError(f"{name} contradicts jms.redeliveryPolicy.* in the url: leave one of them out")
    queue = _dead_letters(options.dead_letter_queue)
    if not _takes(options.destinations, queue):
        return
    for name, value in (("badMessages", options.bad_messages), ("onBatchFailure", options.on_batch_failure)):
        if value == "deadLetter" and name in given:
            raise ConfigError(
                f"{name}=deadLetter would send messages of {queue} back to it for ever, which {options.source} reads: "
                f"set deadLetterQueue to another queue, or {name} to another value"
            )


def _takes(places: Sequence[Destination], queue: Queue) -> bool:
    """Check whether the queue is consumed, by its name or a pattern."""
    return any(each.scheme == queue.scheme and matches(each.name, queue.name) for each in places)


def _dead_letters(name: str | None) -> Queue:
    return Queue(name or DEFAULT_DEAD_LETTER_QUEUE)
