"""Makes the passport of a dead letter, of what the session that has it knows."""

from __future__ import annotations

import logging
import os
import platform
import socket
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Final, TypeAlias

from redelivery.client.ledger import Poison, Received
from redelivery.client.observing.log_lines import MESSAGES, Lines, name_of
from redelivery.model.callables import check_takes_one, deferred
from redelivery.model.callables import name_of as callback_name
from redelivery.model.errors import ConfigError
from redelivery.model.passport import FailedAttempt, Passport
from redelivery.model.passport.failures import passport_of
from redelivery.model.values import from_epoch_ms
from redelivery.model.version import VERSION
from redelivery.policies.destinations.redelivery_map import RedeliveryPolicyMap
from redelivery.policies.redelivery import NO_LIMIT, RedeliveryPolicy
from redelivery.transports.wire.clock import utc_now
from redelivery.transports.wire.threads.guard import interruptible, later

log = logging.getLogger(MESSAGES)
Redaction: TypeAlias = Callable[[Passport], Passport | None]
LONGEST_NAME: Final = 200  # characters of an application's name


class Passports:
    """One connection's. ``redaction`` is the application's function that has the last word; None: there is none."""

    def __init__(
        self,
        policies: RedeliveryPolicyMap,
        lines: Lines,
        *,
        application: str | None = None,
        client_id: str | None = None,
        redaction: Redaction | None = None,
    ) -> None:
        self._policies = policies
        self._lines = lines
        self._application = application
        self._client_id = client_id
        self._redaction = redaction

    @interruptible
    def of(self, order: Poison) -> Passport | None:
        """The passport of a message that is dead-lettered; None: it has none.

        An application's exception, or its function, that raises meanwhile costs the passport and not the letter.
        """
        try:
            return self._redacted(self._made(order.delivery))
        except Exception as error:
            level = self._lines.level(logging.ERROR, "passports that could not be made")
            name = name_of(order.delivery)
            log.log(level, "%s: its dead letter has no passport, as making it failed", name, exc_info=error)
        except BaseException as error:
            if not later(error):
                raise
        return None

    def _made(self, delivery: Received) -> Passport:
        consumer = delivery.link.consumer.name
        attempts = ((number, from_epoch_ms(at)) for number, at in delivery.attempted())
        made = made_passport(delivery.cause, consumer, self._application, self._client_id)
        return replace(
            made,
            attempts=tuple(FailedAttempt(number, at, _host()) for number, at in attempts if at is not None),
            policy=self._policy(delivery),
        )

    def _policy(self, delivery: Received) -> str:
        """The entry of the policies that counted, and its rule."""
        policy, origin = delivery.link.consumer.policy(delivery), delivery.came_from()
        winner = self._policies.explain(origin).winner
        entry = winner.pattern if winner.value == policy else "(of its consumer)"
        return f"{entry}: {_rule(policy)}"

    def _redacted(self, passport: Passport) -> Passport | None:
        if self._redaction is None:
            return passport
        found = self._redaction(passport)
        if found is None or isinstance(found, Passport):
            return found
        raise TypeError(f"{callback_name(self._redaction)} returned a {type(found).__name__}, not a Passport or None")


def made_passport(
    error: BaseException | None, consumer: str, application: str | None, client_id: str | None = None
) -> Passport:
    """The passport of a failure in this process, without its attempts and policy."""
    parts = [consumer, f"process {os.getpid()} on {_host()}"]
    if client_id is not None:
        parts.append(f"client id {client_id}")
    return replace(passport_of(error), client=_client(), application=application, consumer=", ".join(parts))


def attempt_now(number: int) -> FailedAttempt:
    """The attempt that has failed just now, here."""
    return FailedAttempt(number, utc_now(), _host())


def _rule(policy: RedeliveryPolicy) -> str:
    """``6 redeliveries, after 1 s, then 5 times as long each, 60 s at most``."""
    given = [f"{each.name}={each}" for each in (policy.given_wait, policy.given_stop) if each is not None]
    if given:
        return ", ".join(given)
    most, first, later = policy.maximum_redeliveries, policy.initial_redelivery_delay, policy.redelivery_delay
    if not most:
        return "no redelivery"
    if most == 1:
        return f"1 redelivery, after {first:g} s"
    text = f"{'unlimited' if most == NO_LIMIT else most} redeliveries, after {first:g} s"
    if policy.use_exponential_back_off:
        text += f", then {policy.back_off_multiplier:g} times as long each"
        if policy.maximum_redelivery_delay is not None:
            text += f", {policy.maximum_redelivery_delay:g} s at most"
    elif later != first:
        text += f", then {later:g} s each"
    return f"{text}, ±{policy.collision_avoidance_percent} %" if policy.use_collision_avoidance else text


def check_application(application: object) -> None:
    """Raise ConfigError unless it is a name and release, such as ``shop 2.4``, or None."""
    if application is None:
        return
    if not isinstance(application, str):
        raise ConfigError(f"application must be a str such as 'shop 2.4', not a {type(application).__name__}")
    if not application.strip() or not application.isprintable() or len(application) > LONGEST_NAME:
        raise ConfigError(
            f"application={application[:LONGEST_NAME]!r}: use a name and a release, such as 'shop 2.4', in at most "
            f"{LONGEST_NAME} printable characters"
        )


def check_passport(passport: object) -> None:
    """Raise ConfigError where it is neither True nor False, nor a function that redacts one."""
    if isinstance(passport, bool):
        return
    if not callable(passport) or isinstance(passport, type):
        raise ConfigError(
            f"passport={passport!r}: use True, False, or a function that takes a Passport and returns one"
        )
    kind = deferred(passport)
    if kind is not None:
        raise ConfigError(f"passport must be a plain function, not {kind}: it is not awaited")
    check_takes_one(passport, "passport", "a Passport")


@cache
def _host() -> str:
    return socket.gethostname()


@cache
def _client() -> str:
    return f"redelivery {VERSION}, Python {platform.python_version()}"
