"""Acknowledgement modes: the numbers are JMS's (Session) and ActiveMQ's (INDIVIDUAL_ACKNOWLEDGE = 4)."""

from __future__ import annotations

from enum import IntEnum

from redelivery.model.errors import ConfigError
from redelivery.model.suggestions import did_you_mean

_SYNONYMS = {"transaction": "TRANSACTED", "tx": "TRANSACTED", "manual": "CLIENT", "client-individual": "INDIVIDUAL"}


class AckMode(IntEnum):
    """The moment at which a message counts as consumed.

    ``TRANSACTED`` is 0, as in JMS: never test a mode by truth.
    """

    TRANSACTED = 0
    AUTO = 1
    CLIENT = 2
    DUPS_OK = 3
    INDIVIDUAL = 4

    SESSION_TRANSACTED = 0
    AUTO_ACKNOWLEDGE = 1
    CLIENT_ACKNOWLEDGE = 2
    DUPS_OK_ACKNOWLEDGE = 3
    INDIVIDUAL_ACKNOWLEDGE = 4

    @classmethod
    def parse(cls, value: AckMode | int | str) -> AckMode:
        """The mode that ``value`` says: a member, its number, or its name in any case.

        Raises:
            ConfigError: there is no such mode.
        """
        if isinstance(value, str):
            found = cls.__members__.get(value.strip().upper())
            if found is not None:
                return found
        elif isinstance(value, int) and not isinstance(value, bool):
            try:
                return cls(value)
            except ValueError:
                pass
        names = ", ".join(mode.name for mode in cls)
        hint = did_you_mean(value, cls.__members__, _SYNONYMS)
        raise ConfigError(f"ack_mode={value!r} is not an acknowledgement mode; it is one of {names}{hint}")
