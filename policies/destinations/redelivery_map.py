"""A redelivery policy per destination: ActiveMQ's RedeliveryPolicyMap with a total order of its entries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from redelivery.model.destinations import Destination, destination
from redelivery.model.errors import ConfigError
from redelivery.policies.destinations.explain import Explanation
from redelivery.policies.destinations.map import DestinationMap, MapEntry
from redelivery.policies.redelivery import RedeliveryPolicy


class RedeliveryPolicyMap:
    """Immutable. One entry counts as a whole: its unset fields have RedeliveryPolicy's defaults, not another entry's.

    ``entries``: policies by patterns: a name, with ``*`` for one word and ``>`` for any further ones, with or without
    ``queue://`` or ``topic://``. The most specific one counts: word by word literal before ``*`` before ``>``. The
    policies found carry their key as ``destination``, which appears in
    the causes of dead letters as it does in ActiveMQ. ``default``: for what no entry matches; None: RedeliveryPolicy(),
    in a connection the policy of its URL.

    Raises:
        ConfigError: a key is not a pattern or occurs twice, or a value is not a RedeliveryPolicy; the text names it.
    """

    __slots__ = ("_default", "_map")

    def __init__(
        self,
        entries: Mapping[str, RedeliveryPolicy] | Mapping[str | Destination, RedeliveryPolicy],
        default: RedeliveryPolicy | None = None,
    ) -> None:
        self._default = default
        _check("default", self.default)
        plain = DestinationMap(entries)
        named = {}
        for entry in plain.entries:
            _check(repr(entry.key), entry.value)
            named[entry.key] = replace(entry.value, destination=_shown(entry.key))
        self._map = DestinationMap(named)

    @property
    def default(self) -> RedeliveryPolicy:
        """The policy that counts where no entry matches."""
        return RedeliveryPolicy() if self._default is None else self._default

    @property
    def has_default(self) -> bool:
        """False: it was made without a default, so that another one can count (`with_default`)."""
        return self._default is not None

    @property
    def entries(self) -> tuple[MapEntry[RedeliveryPolicy], ...]:
        """All entries, the most specific first."""
        return self._map.entries

    def policy_for(self, target: Destination | str) -> RedeliveryPolicy:
        """The policy of the most specific entry that matches ``target``, else the default. A plain str is a queue.

        Raises:
            InvalidDestinationError: the str is not a destination.
        """
        found = self._map.get(target)
        return self.default if found is None else found

    def explain(self, target: Destination | str) -> Explanation[RedeliveryPolicy]:
        """List the entries that match ``target``, in their order, and say why the first one counts.

        Raises:
            InvalidDestinationError: the str is not a destination.
        """
        return Explanation(destination(target), self._map.candidates(target), self.default)

    def with_default(self, default: RedeliveryPolicy | None) -> RedeliveryPolicyMap:
        """The map that has this default where it was made without one; None: without one, too."""
        if self.has_default or default is None:
            return self
        return RedeliveryPolicyMap({entry.key: entry.value for entry in self._map.entries}, default=default)

    def __repr__(self) -> str:
        keys = ", ".join(repr(key) for key in dict.fromkeys(entry.key for entry in self._map.entries))
        return f"<RedeliveryPolicyMap {keys or 'without entries'}>"


def _check(name: str, value: object) -> None:
    if not isinstance(value, RedeliveryPolicy):
        raise ConfigError(f"{name}: {value!r} is not a RedeliveryPolicy")


def _shown(key: str) -> str:
    # ActiveMQ writes several destinations without the scheme that they share.
    return key.partition("://")[2] or key if "," in key else key
