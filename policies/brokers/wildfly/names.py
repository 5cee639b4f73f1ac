"""The names of settings in the messaging subsystems of WildFly; its first schemas and its last have the same."""

from __future__ import annotations

import re
from typing import Final

from redelivery.policies.brokers.artemis.names import HORNETQ_NAMES
from redelivery.policies.kinds import Names

MULTIPLIER: Final = "redelivery-multiplier"
ARTEMIS: Final = "redelivery-delay-multiplier"

SETTINGS: Final[Names] = {MULTIPLIER if name == ARTEMIS else name: each for name, each in HORNETQ_NAMES.items()}
"""Attribute or element of an ``address-setting`` -> the field of AddressSettings, and the kind of its value."""

SUBSYSTEM: Final = re.compile(
    r"urn:jboss:domain:messaging(?P<artemis>-activemq)?(?::[a-z]+)?:(?P<version>\d{1,4}\.\d{1,4})"
)
"""The namespace of a messaging subsystem: of which broker, and the version of its schema."""

DOMAIN: Final = "urn:jboss:domain"
DEPLOYMENT: Final = "messaging-deployment"  # the root of a *-jms.xml

FILLED: Final = ("max_delivery_attempts", "redelivery_delay", "expiry_delay", "send_to_dla_on_no_route")
"""The fields that each address-setting of JBoss AS 7 and WildFly 8 has, by default if it says nothing (WFLY-3375)."""


def fills(version: str) -> bool:
    """Say whether ``messaging`` of that version gives each address-setting the defaults of what it does not say."""
    return version == "2.0" or (version.startswith("1.") and version < "1.5")
