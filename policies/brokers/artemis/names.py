"""The names, in Artemis' and HornetQ's files, of address settings for redelivery, dead letters and expiry."""

from __future__ import annotations

import re
from typing import Any, Final

from redelivery.model.destinations import Queue, destination
from redelivery.model.errors import ConfigError, InvalidDestinationError
from redelivery.policies.checks import LONG_MAX, read_whole
from redelivery.policies.destinations.address_settings import NO_EXPIRY, AddressSettings
from redelivery.policies.kinds import FLAG, MILLISECONDS, Kind, Names, number, whole


def _expiry(name: str, text: str) -> float:
    milliseconds = read_whole(name, text, -1, LONG_MAX)
    return NO_EXPIRY if milliseconds == -1 else milliseconds / 1000


def _address(name: str, text: str) -> str:
    try:  # also without the prefix of WildFly and HornetQ, which makes it the name of a queue or topic
        if not Queue(text.removeprefix("jms.queue.").removeprefix("jms.topic.")).is_pattern:
            return text
    except InvalidDestinationError:
        pass
    raise ConfigError(f"{name}={text!r}: use the name of one address")


def _part(name: str, text: str) -> str:
    try:
        if not destination(f"queue://{text}x").is_pattern:
            return text
    except InvalidDestinationError:
        pass
    raise ConfigError(f"{name}={text!r}: use what can be a part of the name of a queue")


_EXPIRY: Final = Kind(_expiry, lambda seconds: "-1" if seconds == NO_EXPIRY else MILLISECONDS.spell(seconds))
_ADDRESS: Final = Kind(_address)
_PART: Final = Kind(_part)

NAMES: Final[Names] = {
    "redelivery-delay": ("redelivery_delay", MILLISECONDS),
    "redelivery-delay-multiplier": ("redelivery_delay_multiplier", number(0.0)),
    "redelivery-collision-avoidance-factor": ("redelivery_collision_avoidance_factor", number(0.0, 1.0)),
    "max-redelivery-delay": ("max_redelivery_delay", MILLISECONDS),
    "max-delivery-attempts": ("max_delivery_attempts", whole(-1)),
    "dead-letter-address": ("dead_letter_address", _ADDRESS),
    "send-to-dla-on-no-route": ("send_to_dla_on_no_route", FLAG),
    "auto-create-dead-letter-resources": ("auto_create_dead_letter_resources", FLAG),
    "dead-letter-queue-prefix": ("dead_letter_queue_prefix", _PART),
    "dead-letter-queue-suffix": ("dead_letter_queue_suffix", _PART),
    "expiry-address": ("expiry_address", _ADDRESS),
    "expiry-delay": ("expiry_delay", _EXPIRY),
    "min-expiry-delay": ("min_expiry_delay", _EXPIRY),
    "max-expiry-delay": ("max_expiry_delay", _EXPIRY),
    "no-expiry": ("no_expiry", FLAG),
    "auto-create-expiry-resources": ("auto_create_expiry_resources", FLAG),
    "expiry-queue-prefix": ("expiry_queue_prefix", _PART),
    "expiry-queue-suffix": ("expiry_queue_suffix", _PART),
}
"""Element of an ``address-setting`` -> the field of AddressSettings, and the kind of its value."""

SINCE_ARTEMIS: Final = frozenset(
    {
        "redelivery-collision-avoidance-factor",
        "auto-create-dead-letter-resources",
        "dead-letter-queue-prefix",
        "dead-letter-queue-suffix",
        "min-expiry-delay",
        "max-expiry-delay",
        "no-expiry",
        "auto-create-expiry-resources",
        "expiry-queue-prefix",
        "expiry-queue-suffix",
    }
)
"""What HornetQ does not have."""

HORNETQ_NAMES: Final[Names] = {name: each for name, each in NAMES.items() if name not in SINCE_ARTEMIS}

_NOT_CAMEL: Final = {
    "redelivery-delay-multiplier": "redeliveryMultiplier",
    "send-to-dla-on-no-route": "sendToDLAOnNoRoute",
}


def camel_case(name: str) -> str:
    """Spell the name of an element as a field: ``redeliveryDelay``."""
    first, *others = name.split("-")
    return first + "".join(each.capitalize() for each in others)


CAMEL_NAMES: Final[Names] = {camel_case(name): each for name, each in NAMES.items()}
"""The same as the operator's custom resources spell them: ``redeliveryDelayMultiplier``."""

_SIZES: Final = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}
_SIZE: Final = re.compile(r"(\d{1,19})\s*(?:([kmg])i?)?b?", re.IGNORECASE | re.ASCII)
_FLAGS: Final = {"true": ("yes", "y", "on", "1"), "false": ("no", "n", "off", "0")}
_FLAG_OF: Final = {word: flag for flag, words in _FLAGS.items() for word in words}


def _of_bean(kind: Kind) -> Kind:
    """Return the kind as Artemis converts a property: with blanks around it, ``5K`` for 5120, and ``yes`` for true."""

    def read(name: str, text: str) -> Any:
        plain = text.strip()
        size = _SIZE.fullmatch(plain) if kind is MILLISECONDS else None
        if size is not None:
            plain = str(int(size[1]) * _SIZES[(size[2] or "").lower()])
        elif kind is FLAG:
            plain = _FLAG_OF.get(plain.lower(), plain)
        return kind.read(name, text if kind in (_PART, _ADDRESS) else plain)

    return Kind(read, kind.spell)


BEAN_FLAG: Final = _of_bean(FLAG)
PROPERTY_NAMES: Final[Names] = {
    _NOT_CAMEL.get(name, camel_case(name)): (field, _of_bean(kind)) for name, (field, kind) in NAMES.items()
}
"""The same as ``broker.properties`` spells them, by the names of Artemis' beans: ``redeliveryMultiplier``."""

WILDCARDS: Final = {"delimiter": "delimiter", "any-words": "any_words", "single-word": "single_word"}
"""Element of ``wildcard-addresses`` -> field of Wildcards."""

CONCERNS: Final = re.compile(r"redel|deliv|dead|dlq|dla|expir", re.IGNORECASE)
"""A name of this kind that is unknown must not be skipped in silence."""


def written(settings: AddressSettings, names: Names = NAMES) -> dict[str, str]:
    """Spell the fields that the settings give, by the names of their elements, or by others."""
    given = settings.fields_set
    return {name: kind.spell(getattr(settings, field)) for name, (field, kind) in names.items() if field in given}
