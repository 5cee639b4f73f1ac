"""The rules of one connection: those of its keywords, of a broker's configuration, and of its URL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any, Final, TypeVar

from redelivery.model.errors import ConfigError
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.checks import wrong_kind
from redelivery.policies.connection_url import ConnectionURL
from redelivery.policies.dead_letters import DeadLetterStrategy
from redelivery.policies.destinations.redelivery_map import RedeliveryPolicyMap
from redelivery.policies.destinations.strategy_map import DeadLetterStrategyMap
from redelivery.policies.prefetch import PrefetchPolicy
from redelivery.policies.redelivery import RedeliveryPolicy

M = TypeVar("M", RedeliveryPolicyMap, DeadLetterStrategyMap)

_KINDS: Final[Mapping[str, type]] = {
    "redelivery_policy": RedeliveryPolicy,
    "redelivery_policies": RedeliveryPolicyMap,
    "dead_letter_strategy": DeadLetterStrategy,
    "dead_letter_strategies": DeadLetterStrategyMap,
    "policies": BrokerPolicies,
}
_MAPS: Final = (RedeliveryPolicyMap, DeadLetterStrategyMap)
_READ: Final = "policies=redelivery.policies.read({})"


@dataclass(frozen=True, slots=True)
class ConnectionRules:
    """The policies, strategies and numbers that one connection obeys; two sources of the same are merged already."""

    redelivery_policies: RedeliveryPolicyMap
    dead_letter_strategies: DeadLetterStrategyMap
    prefetch: PrefetchPolicy
    non_blocking_redelivery: bool


def connection_rules(
    url: ConnectionURL,
    *,
    policies: BrokerPolicies | None = None,
    redelivery_policy: RedeliveryPolicy | None = None,
    redelivery_policies: RedeliveryPolicyMap | Mapping[str, RedeliveryPolicy] | None = None,
    dead_letter_strategy: DeadLetterStrategy | None = None,
    dead_letter_strategies: DeadLetterStrategyMap | Mapping[str, DeadLetterStrategy] | None = None,
    prefetch: int | PrefetchPolicy | None = None,
    non_blocking_redelivery: bool | None = None,
    vhost: str | None = None,
) -> ConnectionRules:
    """Merge the keywords of a connection with what its URL says: of each, what is given first here counts.

    Redelivery: ``redelivery_policy``, ``redelivery_policies`` or ``policies``; where these say nothing of a destination
    (a map without a default, a broker that leaves it to its clients) the URL; RedeliveryPolicy(). Dead letters:
    ``dead_letter_strategy``, ``dead_letter_strategies`` or ``policies``; BrokerDeadLetterStrategy(). ``prefetch`` and
    ``non_blocking_redelivery``: these; those of ``policies`` that are a client's; the URL's. ``vhost``: whose queues
    are meant where ``policies`` are of a broker that has virtual hosts. Raises ConfigError: one is of another kind, or
    two say the same; the text names them.
    """
    given = {
        "redelivery_policy": redelivery_policy,
        "redelivery_policies": redelivery_policies,
        "dead_letter_strategy": dead_letter_strategy,
        "dead_letter_strategies": dead_letter_strategies,
    }
    for name, value in {**given, "policies": policies}.items():
        _check(name, value)
    _check_one_says_it([name for name, value in given.items() if value is not None], policies)
    if policies is None:
        redeliveries = _map(RedeliveryPolicyMap, redelivery_policies, redelivery_policy)
        strategies = _map(DeadLetterStrategyMap, dead_letter_strategies, dead_letter_strategy)
    else:
        rules = policies.rules.for_host(vhost).for_clients()
        if rules.returning:
            raise ConfigError(
                f"policies= are those of a client that redelivers nothing by itself ({policies.path}): its broker's "
                "rules count, so read its broker's file"
            )
        redeliveries, strategies = rules.redelivery_policies(), rules.dead_letter_strategies()
        prefetch = rules.prefetch if prefetch is None else prefetch
        non_blocking_redelivery = rules.non_blocking if non_blocking_redelivery is None else non_blocking_redelivery
    overtaking = url.non_blocking_redelivery if non_blocking_redelivery is None else non_blocking_redelivery
    return ConnectionRules(
        redelivery_policies=redeliveries.with_default(url.redelivery_policy),
        dead_letter_strategies=strategies,
        prefetch=PrefetchPolicy.of(url.prefetch if prefetch is None else prefetch),
        non_blocking_redelivery=bool(overtaking),
    )


def _map(kind: type[M], given: Any, default: Any) -> M:
    """Return the map itself, or that of a dict; without one, that of what is for all destinations."""
    if given is None:
        return kind({}, default=default)
    return given if isinstance(given, kind) else kind(given)


def _check(name: str, value: object) -> None:
    kind = _KINDS[name]
    if value is None or isinstance(value, kind):
        return
    meant = next((other for other, of in _KINDS.items() if isinstance(value, of)), None)
    if meant is None and name != "policies" and isinstance(value, Mapping) and issubclass(kind, _MAPS):
        return  # a dict of patterns
    text = wrong_kind(name, kind, value)
    if meant is not None:
        text += f": that is {meant}="
    elif name == "policies":
        text += f": {_READ}".format(repr(str(value)) if isinstance(value, str | PathLike) else "'broker.xml'")
    elif name == "dead_letter_strategy" and isinstance(value, str):  # the queue's name alone does not say which one
        text = f"{name} must be a {kind.__name__}: SharedDeadLetterStrategy({value!r})"
    raise ConfigError(text)


def _check_one_says_it(given: list[str], policies: BrokerPolicies | None) -> None:
    for one, other in (
        ("redelivery_policy", "redelivery_policies"),
        ("dead_letter_strategy", "dead_letter_strategies"),
    ):
        if one in given and other in given:
            raise ConfigError(f"give {one} (for all destinations) or {other} (a map), not both")
    if policies is not None and given:
        rest = "dead_letter_strategies" if given[0].startswith("redelivery") else "redelivery_policies"
        raise ConfigError(
            f"policies= and {given[0]}= were given, and {policies.path} says the same: give policies= alone, or "
            f"{given[0]}= and {rest}=policies.{rest}"
        )
