"""A connection, and another one when it is lost: with back-off, and not for ever."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_delay, stop_when_event_set
from tenacity.wait import wait_exponential, wait_random

import redelivery
from redelivery.model.errors import ConnectError, ConnectionLostError, JMSError, RequestTimeoutError
from redelivery.policies.dead_letters import DeadLetterStrategy
from redelivery.policies.redelivery import RedeliveryPolicy

log = logging.getLogger(__name__)
T = TypeVar("T")

LOST = (ConnectError, ConnectionLostError, RequestTimeoutError)  # what a new connection may cure
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 10.0  # seconds
_CONNECT_TIMEOUT, _CLOSE_TIMEOUT = 10.0, 15.0


class Broker(Protocol):
    """What of the options says where the broker is."""

    @property
    def url(self) -> str:
        """The broker's."""

    @property
    def username(self) -> str | None:
        """Who logs in."""

    @property
    def password(self) -> str | None:
        """With what."""

    @property
    def dialect(self) -> str:
        """Which broker it is, or ``auto``."""

    @property
    def max_reconnect_time(self) -> float:
        """Seconds after which a broker that cannot be reached fails the query."""


def factory(
    broker: Broker,
    *,
    redelivery_policy: RedeliveryPolicy | None = None,
    dead_letter_strategy: DeadLetterStrategy | None = None,
    prefetch: int | None = None,
    patience: float = 30.0,
) -> redelivery.ConnectionFactory:
    """What makes its connections. Raises ConfigError.

    ``patience``: seconds that an answer of the broker may take.
    """
    return redelivery.ConnectionFactory(
        broker.url,
        username=broker.username,
        password=broker.password,
        dialect=broker.dialect,
        redelivery_policy=redelivery_policy,
        dead_letter_strategy=dead_letter_strategy,
        prefetch=prefetch,
        connect_timeout=min(_CONNECT_TIMEOUT, max(1.0, broker.max_reconnect_time)),
        request_timeout=patience,
        close_timeout=min(_CLOSE_TIMEOUT, patience),
    )


def connect(broker: Broker, *, stopped: threading.Event | None = None) -> redelivery.Connection:
    """A started connection; `persist` says how, and what is raised."""
    made = factory(broker)
    return persist(made.create_connection, made, broker.max_reconnect_time, stopped)


def persist(call: Callable[[], T], broker: object, seconds: float, stopped: threading.Event | None = None) -> T:
    """``call``, again with back-off until it succeeds or ``seconds`` have passed.

    Args:
        call: connects, and whatever else may fail because the connection is lost.
        broker: its name, for the error.
        stopped: set when nobody wants it any more, which ends the waiting.

    Raises:
        ConnectError: the broker was not reached in that time; the text names it.
        SecurityError, ProtocolError, ConfigError: what another try would not cure, at once.
    """
    given_up = stopped or threading.Event()

    def log_retry(state: RetryCallState) -> None:
        assert state.outcome is not None
        log.warning("%s: try %d: %s", broker, state.attempt_number, state.outcome.exception())

    def give_up(state: RetryCallState) -> Any:
        assert state.outcome is not None
        error = state.outcome.exception()
        if given_up.is_set() and isinstance(error, JMSError):
            raise error
        raise ConnectError(
            f"{broker} could not be reached for {seconds:g} s (maxReconnectTime), after {state.attempt_number} tries: "
            f"{error}"
        ) from error

    retrying = Retrying(
        retry=retry_if_exception_type(LOST),
        wait=wait_exponential(multiplier=_FIRST_WAIT, max=_LONGEST_WAIT) + wait_random(0, _FIRST_WAIT),
        stop=stop_after_delay(seconds) | stop_when_event_set(given_up),
        sleep=given_up.wait,
        before_sleep=log_retry,
        retry_error_callback=give_up,
    )
    result: T = retrying(call)
    return result
