"""The fields of the operator's resources (CRDs) that concern redelivery, dead letters and expiry, by version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from redelivery.policies.brokers.artemis.names import CAMEL_NAMES
from redelivery.policies.kinds import Names

Type: TypeAlias = Literal["boolean", "integer", "number", "string"]

GROUPS: Final = {"broker.amq.io": "ActiveMQArtemis", "broker.arkmq.org": "Broker"}
"""API group -> the kind of a broker in it."""

ADDRESS: Final = "ActiveMQArtemisAddress"

_FLOATS: Final = ("redeliveryDelayMultiplier", "redeliveryCollisionAvoidanceFactor")
_NOT_THERE: Final = ("noExpiry",)

SETTINGS: Final[Names] = {name: each for name, each in CAMEL_NAMES.items() if name not in (*_FLOATS, *_NOT_THERE)}
"""Field of an ``addressSetting`` -> field of AddressSettings, and the kind of its value."""

OLD_SETTINGS: Final[Names] = {name: each for name, each in CAMEL_NAMES.items() if name not in _NOT_THERE}
"""The same before v1beta1, which has no numbers with a fraction."""

VERSIONS: Final[Mapping[str, Names]] = {
    "v2alpha1": {},  # without addressSettings
    "v2alpha2": {},
    **dict.fromkeys(("v2alpha3", "v2alpha4", "v2alpha5"), OLD_SETTINGS),
    **dict.fromkeys(("v1beta1", "v1beta2"), SETTINGS),
}
"""Version of a broker's resource -> the names of its settings."""

WITH_PROPERTIES: Final = ("v1beta1", "v1beta2")
"""The versions that have ``brokerProperties``."""

RULES: Final = ("merge_all", "merge_replace", "replace_all")
"""Values of ``applyRule``, the default first."""

INT_MIN, INT_MAX = -(1 << 31), (1 << 31) - 1


def type_of(name: str, version: str) -> Type:
    """Return the type that the resource's schema gives a setting: what has another one is refused by Kubernetes."""
    if name.startswith(("auto", "sendTo")):
        return "boolean"
    if name.endswith(("Address", "Prefix", "Suffix")):
        return "string"
    with_fraction = name == _FLOATS[1] or (name == _FLOATS[0] and version == "v2alpha5")
    return "number" if with_fraction else "integer"
