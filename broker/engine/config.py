"""The set-up of an embedded broker: values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hmac import compare_digest
from types import MappingProxyType
from typing import Literal

from redelivery.model.destinations import Destination
from redelivery.model.errors import ConfigError, InvalidSelectorError
from redelivery.model.selectors.selector import Selector
from redelivery.policies.brokers.rules import Rules
from redelivery.policies.dead_letters import BrokerDeadLetterStrategy, DeadLetterStrategy, SharedDeadLetterStrategy
from redelivery.policies.destinations.strategy_map import DeadLetterStrategyMap
from redelivery.policies.files.places import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """The options of an EmbeddedBroker.

    ``dead_letter_strategy``: what happens to poisoned and expired messages; ActiveMQ.DLQ by default.
    ``dead_letter_strategies``: the same for some destinations, by pattern ("individual.>", "topic://news.*"). A
    DeadLetterStrategyMap brings its own for all others, unless that leaves it to the broker.
    ``rules``: those of a broker's configuration file (``redelivery.policies.read(path).rules``); None: ActiveMQ's, with
    the two above.
    ``memory_limit``: bytes that messages may take, about; a send beyond raises ResourceAllocationError. None: no limit.
    ``users``: passwords by name; None admits everybody.
    ``amqp_idle_timeout``: seconds after which a silent AMQP client is cut off; 0 for never.
    ``store_synchronous``: with a store, "full": what was answered survives a power failure; "normal": a kill -9 only.

    Raises:
        ConfigError: a value of the wrong type or out of its range; the text names it.
    """

    dead_letter_strategy: DeadLetterStrategy = field(
        default_factory=lambda: SharedDeadLetterStrategy(process_non_persistent=False)
    )
    dead_letter_strategies: Mapping[str, DeadLetterStrategy] = field(default_factory=dict)
    rules: Rules | None = None
    memory_limit: int | None = None
    users: Mapping[str, str] | None = field(default=None, repr=False)
    amqp_idle_timeout: float = 60.0
    store_synchronous: Literal["full", "normal"] = "full"
    _strategies: DeadLetterStrategyMap = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        given = self.dead_letter_strategies
        if isinstance(given, DeadLetterStrategyMap) and not isinstance(given.default, BrokerDeadLetterStrategy):
            object.__setattr__(self, "dead_letter_strategy", given.default)
        _check_strategy("dead_letter_strategy", self.dead_letter_strategy)
        for pattern, strategy in self.dead_letter_strategies.items():
            _check_strategy(f"dead_letter_strategies[{pattern!r}]", strategy)
        if self.rules is not None:
            _check_rules(self.rules)
        limit = self.memory_limit
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
            raise ConfigError(f"memory_limit={limit!r} is not a number of bytes: pass an int ≥ 0, or None")
        idle = self.amqp_idle_timeout
        if isinstance(idle, bool) or not isinstance(idle, (int, float)) or not 0 <= idle <= 1_000_000:
            raise ConfigError(f"amqp_idle_timeout={idle!r} is not a number of seconds: pass one from 0 to 1_000_000")
        if self.store_synchronous not in ("full", "normal"):
            raise ConfigError(f'store_synchronous={self.store_synchronous!r} is unknown: pass "full" or "normal"')
        for name in ("dead_letter_strategies", "users"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, MappingProxyType(dict(value)))
        strategies = DeadLetterStrategyMap(self.dead_letter_strategies, default=self.dead_letter_strategy)
        object.__setattr__(self, "_strategies", strategies)

    def strategy_for(self, destination: Destination) -> DeadLetterStrategy:
        """The strategy of the most specific pattern that matches, else the default."""
        return self._strategies.strategy_for(destination)

    def admits(self, username: str | None, password: str | None) -> bool:
        """Check whether a client with this ``username`` and ``password`` may connect."""
        if self.users is None:
            return True
        known = self.users.get(username or "")
        return known is not None and compare_digest(known.encode(), (password or "").encode())


def _check_rules(rules: Rules) -> None:
    if not hasattr(rules, "rules_for"):
        raise ConfigError(f"rules={rules!r} are not a broker's rules: pass redelivery.policies.read(path).rules")
    if rules.is_client:
        raise ConfigError("rules: these are a client's: pass the rules of a broker's configuration file")
    for queue, condition, place in rules.selectors():
        _check_filter(queue, condition, place)


def _check_filter(queue: str, condition: str, place: Place) -> None:
    try:
        if condition:
            Selector(condition)
    except InvalidSelectorError as error:
        raise ConfigError(f"{place}: the filter of the queue {queue!r}: {error}") from error


def _check_strategy(name: str, value: object) -> None:
    if not isinstance(value, DeadLetterStrategy):
        raise ConfigError(f"{name}={value!r} is not a dead-letter strategy: pass e.g. SharedDeadLetterStrategy()")
    if isinstance(value, BrokerDeadLetterStrategy):
        raise ConfigError(f"{name}: this is the broker itself: pass SharedDeadLetterStrategy() or an individual one")
