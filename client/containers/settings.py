"""The options of a listener container, checked."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, TypeAlias, TypedDict, Unpack

from redelivery.client.arguments import check_selector, check_subscription, optional_seconds, seconds
from redelivery.client.containers.calls import Makers, arguments, takes_message
from redelivery.model.callables import check_runs, check_takes_one, name_of
from redelivery.model.content.typed.converter import Converter, converter
from redelivery.model.destinations import Destination, SubscriptionName, Topic
from redelivery.model.destinations import destination as parse_destination
from redelivery.model.errors import ConfigError, MessageFormatError
from redelivery.model.messages import Message
from redelivery.model.modes import AckMode
from redelivery.policies.redelivery import RedeliveryPolicy

OutageOn: TypeAlias = type[BaseException] | tuple[type[BaseException], ...] | Callable[[Exception], object] | None
_TOPICS: Final = ("topic://", "temp-topic://")
_MODES: Final = (AckMode.TRANSACTED, AckMode.CLIENT)


class ContainerKeywords(TypedDict, total=False):
    """The keywords of a listener container beside the destination and its handler.

    concurrency: how many workers (1), each with a session of its own; ``(min, max)``: as many of these as the backlog
        needs. More than one consume a topic by a shared subscription only.
    ack_mode: ``"transacted"``, which is the default: what the handler sends by its session, and the message, are one;
        or ``"client"``: the message alone is acknowledged when the handler has returned.
    max_messages_per_task: a worker takes a new session after so many.
    fatal: exception classes that are dead-lettered at once. A body that does not convert is, without being named.
    retry_on: exception classes that are worth another attempt, those of ``outage_on`` among them: all others are
        dead-lettered at once. None are named: all but ``fatal`` are.
    deadline: seconds over all attempts with a message here, after which the next failure dead-letters it.
    body_type: the type of the body, which the handler is given instead of the message: see
        `redelivery.model.content.typed.converter.converter`. A handler whose first parameter is annotated as a Message
        is given that, with such a body.
    outage_on: what an outage looks like, as of a database: exception classes, ``Exception`` for all, or a callable that
        is given what the handler raised. Without it there is no outage, and each failure is its message's own.
    outage_after: when so many different messages (10) have failed by these in a row, of all workers, nothing is
        consumed but another message every ``probe_interval``, uncounted, until one succeeds; None: never.
    probe_interval: seconds (5) between these.
    handler_warning_after: seconds (300) after which a handler that has not returned is logged as a WARNING, once for
        each message, with the stack that says where it is; None: never. Nothing else happens to it.
    subscription: the name of a subscription to the topic that the workers consume. Several workers need a shared one.
    shared: the subscription is a shared one.
    durable: the subscription keeps what is sent to the topic while no worker is there; False with ``shared`` only.
    prefetch: of the consumers, as for `Session.consumer`; 0: a worker holds the message that it is handling, and no
        other; None, where there are several: the same, but that more comes ahead to a quick handler (`lanes.Pace`).
    selector, redelivery_policy, bodies: of the consumers, as for `Session.consumer`.
    """

    concurrency: int | tuple[int, int]
    ack_mode: AckMode | int | str
    max_messages_per_task: int | None
    fatal: type[BaseException] | tuple[type[BaseException], ...]
    retry_on: type[BaseException] | tuple[type[BaseException], ...]
    deadline: float | timedelta | None
    body_type: Any
    outage_on: OutageOn
    outage_after: int | None
    probe_interval: float | timedelta
    handler_warning_after: float | timedelta | None
    subscription: str | None
    shared: bool
    durable: bool
    selector: str | None
    prefetch: int | None
    redelivery_policy: RedeliveryPolicy | None
    bodies: str


CONTAINER_DEFAULTS: Final[ContainerKeywords] = {
    "concurrency": 1,
    "ack_mode": "transacted",
    "fatal": (),
    "retry_on": (),
    "outage_on": None,
    "outage_after": 10,
    "probe_interval": 5.0,
    "handler_warning_after": 300.0,
    "shared": False,
    "durable": True,
}
CONTAINER_SYNONYMS: Final = {
    "workers": "concurrency",
    "threads": "concurrency",
    "acknowledge_mode": "ack_mode",
    "mode": "ack_mode",
    "policy": "redelivery_policy",
    "subscription_name": "subscription",
}
"""Names of options in other containers -> their names here."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that a container was asked for."""

    destination: Destination
    handler: Callable[..., Any]
    arguments: Callable[[Message, Any], dict[str, Any]]
    convert: Converter | None
    gives_message: bool  # and not its body
    minimum: int
    maximum: int
    mode: AckMode
    max_messages: int | None
    fatal: tuple[type[BaseException], ...]
    retry_on: tuple[type[BaseException], ...]
    outage_on: Callable[[Exception], object] | None
    deadline: float | None
    outage_after: int | None
    probe_interval: float
    warning_after: float | None
    named: SubscriptionName | None
    consumer: dict[str, Any]  # keywords of `Session.consumer`

    def consume(self, session: Any) -> Any:
        """A worker's consumer, of a session of either shell."""
        return session._consumer(self.named, self.destination, self.consumer, self.maximum)

    @property
    def name(self) -> str:
        """Of the handler, for the log."""
        return name_of(self.handler)


def check_settings(
    destination: Destination | str, handler: Callable[..., Any], makers: Makers, **given: Unpack[ContainerKeywords]
) -> Settings:
    """Raises ConfigError, InvalidDestinationError, InvalidSelectorError: an option does not fit; the text names it."""
    if not callable(handler):
        raise ConfigError(f"listener_container: {handler!r} is not callable: give a function that takes a message")
    _check_effects(given)
    given = {**CONTAINER_DEFAULTS, **given}
    minimum, maximum = _concurrency(given["concurrency"])
    mode = AckMode.parse(given["ack_mode"])
    if mode not in _MODES:
        raise ConfigError(
            f"ack_mode={given['ack_mode']!r}: a container acknowledges a message when its handler has returned: "
            "'transacted', or 'client'"
        )
    check_selector(given.get("selector"))
    deadline = optional_seconds("deadline", given.get("deadline"))
    interval = seconds("probe_interval", given["probe_interval"])
    if not interval:
        raise ConfigError("probe_interval=0 would probe without a pause: pass seconds > 0")
    warning_after = optional_seconds("handler_warning_after", given["handler_warning_after"])
    if warning_after == 0:
        raise ConfigError("handler_warning_after=0 would warn of each message: pass seconds > 0, or None")
    target = parse_destination(destination)
    return Settings(
        destination=target,
        handler=handler,
        arguments=arguments(handler, makers),
        convert=converter(given.get("body_type")),
        gives_message=given.get("body_type") is None or takes_message(handler),
        minimum=minimum,
        maximum=maximum,
        mode=mode,
        max_messages=_from_1("max_messages_per_task", given.get("max_messages_per_task")),
        fatal=(*_classes("fatal", given["fatal"]), MessageFormatError),
        retry_on=_classes("retry_on", given["retry_on"]),
        outage_on=_outage_on(given["outage_on"]),
        deadline=deadline,
        outage_after=_from_1("outage_after", given["outage_after"]),
        probe_interval=interval,
        warning_after=warning_after,
        named=_named(target, given, maximum),
        consumer={
            name: given[name] for name in ("selector", "prefetch", "redelivery_policy", "bodies") if name in given
        },
    )


def _check_effects(given: ContainerKeywords) -> None:
    """Raise where an option would have none."""
    names = [name for name in ("outage_after", "probe_interval") if given.get(name) is not None]
    if names and given.get("outage_on") in (None, ()):
        raise ConfigError(
            f"{names[0]} has no effect without outage_on: say by outage_on=… which exceptions mean an outage, "
            "outage_on=Exception for all"
        )
    fatal = _classes("fatal", given.get("fatal", ()))
    for name in ("retry_on", "outage_on"):
        option = given.get(name)
        for each in option if isinstance(option, tuple) else (option,):
            if isinstance(each, type) and issubclass(each, (*fatal, MessageFormatError)):
                raise ConfigError(
                    f"{name}={each.__name__} has no effect: it is fatal, so it is dead-lettered at once; "
                    "name it in one of the two"
                )


def _named(target: Destination, given: ContainerKeywords, workers: int) -> SubscriptionName | None:
    name, durable, shared = given.get("subscription"), given["durable"], given["shared"]
    if name is None:
        if shared or not durable:
            raise ConfigError("shared and durable say what kind of subscription it is: name it by subscription='…'")
        if workers > 1 and _has_topic(target):
            raise ConfigError(
                f"concurrency={given['concurrency']}: each of several workers would handle every message of {target}; "
                "pass concurrency=1, or have them share a subscription: subscription='…', shared=True"
            )
        return None
    if not (durable or shared):
        raise ConfigError(f"subscription={name!r} is neither durable nor shared: leave the name out for a plain one")
    named = SubscriptionName(name, durable=durable, shared=shared)
    check_subscription(target, named, no_local=False)
    if workers > 1 and not shared:
        raise ConfigError(f"concurrency: {named} serves one consumer at a time; pass concurrency=1, or shared=True")
    return named


def _has_topic(target: Destination) -> bool:
    """Also as a part of a composite one."""
    parts = target.name.split(",")
    return isinstance(target, Topic) or any(part.strip().startswith(_TOPICS) for part in parts[1:])


def _classes(name: str, given: object) -> tuple[type[BaseException], ...]:
    classes = given if isinstance(given, tuple) else (given,)
    for each in classes:
        if not isinstance(each, type) or not issubclass(each, BaseException):
            raise ConfigError(f"{name}={each!r} is not a class of exceptions: pass one, or a tuple of them")
    return classes


def _outage_on(given: object) -> Callable[[Exception], object] | None:
    if given is None or given == ():
        return None
    if callable(given) and not isinstance(given, type):
        check_takes_one(given, "outage_on", "what the handler raised")
        check_runs(given, "outage_on")
        return given
    classes = _classes("outage_on", given)
    return lambda error: isinstance(error, classes)


def _concurrency(given: object) -> tuple[int, int]:
    pair = given if isinstance(given, tuple) else (given, given)
    if len(pair) == 2 and all(_is_from_1(each) for each in pair) and pair[0] <= pair[1]:
        return pair
    hint = ""
    if isinstance(given, str) and (found := re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", given)):
        few, many = found.groups()  # as Spring writes it
        hint = f": write concurrency={int(few)}" if many is None else f": write concurrency=({int(few)}, {int(many)})"
    raise ConfigError(f"concurrency={given!r} must be an integer >= 1, or (min, max) of such{hint}")


def _from_1(name: str, value: object) -> int | None:
    if value is None or _is_from_1(value):
        return value  # type: ignore[return-value]  # it is one
    raise ConfigError(f"{name}={value!r} must be an integer >= 1, or None")


def _is_from_1(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
