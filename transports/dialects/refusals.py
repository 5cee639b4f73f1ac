"""Reads brokers' refusals: one may come before it is known which broker it is."""

from __future__ import annotations

import re
from typing import Final

from redelivery.model.errors import (
    IllegalStateError,
    InvalidClientIDError,
    InvalidDestinationError,
    InvalidSelectorError,
    JMSError,
    ResourceAllocationError,
    SecurityError,
)

# Of an ERROR. The first that occurs, ignoring case, decides. JMS brokers put their exception's class into the body.
STOMP_WORDS: Final[tuple[tuple[str, type[JMSError]], ...]] = (
    ("invalidclientidexception", InvalidClientIDError),
    ("already connected from", InvalidClientIDError),
    ("created by another connection is not permitted", InvalidDestinationError),  # Classic, from 6.3 on
    ("invalidselectorexception", InvalidSelectorError),
    ("invalid selector", InvalidSelectorError),
    ("invalid filter", InvalidSelectorError),
    ("invaliddestinationexception", InvalidDestinationError),
    ("destination doesnt exist", InvalidDestinationError),
    ("does not exist", InvalidDestinationError),
    ("not_found", InvalidDestinationError),
    ("durable consumer is in use", IllegalStateError),
    ("illegalstateexception", IllegalStateError),
    ("error unsubscribing", IllegalStateError),  # Artemis: another connection has a consumer
    ("resourceallocationexception", ResourceAllocationError),
    ("usage manager", ResourceAllocationError),
    ('" is full', ResourceAllocationError),
    ("is full", ResourceAllocationError),
    ("securityexception", SecurityError),
    ("is not authorized", SecurityError),
    ("not authorised", SecurityError),
    ("access refused", SecurityError),
    ("access_refused", SecurityError),
    ("access denied", SecurityError),
    ("bad credentials", SecurityError),
    ("password is invalid", SecurityError),
    ("login account is not valid", SecurityError),  # HornetQ
    ("login failed", SecurityError),
    ("authentication", SecurityError),
    ("permission", SecurityError),
    ("destination must start with", InvalidDestinationError),
    ("unknown destination", InvalidDestinationError),
    ("amq339011", ResourceAllocationError),
)
# Of an ERROR that answers CONNECT: a broker that has no virtual hosts does not ignore one that is named.
HOSTS_REFUSED: Final = "virtual hosting is not supported"
# What to do where the broker's own words do not say it, and no other words have decided.
STOMP_HINTS: Final[tuple[tuple[str, str], ...]] = (
    (
        "created by another connection is not permitted",
        " (over STOMP the session that made it is the one that consumes it, unless a policyEntry for it says"
        ' allowTempDestinationStealing="true")',
    ),
    ("amq339011", " (it does not say why: the address is full, or this user may not send to it)"),  # Artemis
)
# Of an ERROR: the whole message, with its properties (Artemis, HornetQ). They are the application's own, and decide
# nothing. Group 1 is its destination.
STOMP_DUMP: Final = re.compile(r"\b(?:Core|Server)Message\[(?:.*?\baddress=([^,\]]*))?.*", re.DOTALL)
STOMP_UNFILLED: Final = ": {0}"  # of an ERROR: HornetQ forgets to say which; the caller knows
# Of an AMQP condition. Some brokers have none of their own for it, only words.
AMQP_WORDS: Final[tuple[tuple[str, type[JMSError]], ...]] = (
    ("already connected from", InvalidClientIDError),
    ("invalid-client-id", InvalidClientIDError),
    ("invalidclientid", InvalidClientIDError),
    ("selector", InvalidSelectorError),
    ("invalid filter", InvalidSelectorError),
    ("is not authorized", SecurityError),
    ("does not have permission", SecurityError),
    ("not authorized", SecurityError),
    ("is denied", SecurityError),  # Broker-J
    ("access refused", SecurityError),
    ("access_refused", SecurityError),
    ("access to vhost", SecurityError),  # RabbitMQ
    ("usage manager", ResourceAllocationError),
    ("is full", ResourceAllocationError),
    ("is in use", IllegalStateError),  # Classic: Durable consumer is in use
    ("maximum consumer limit reached", IllegalStateError),  # Artemis: a durable subscription has a consumer
    ("consumers already exist", IllegalStateError),  # Artemis: a shared one, of another selector
    ("already in use", IllegalStateError),  # Broker-J: the same
    ("active consumers on the shared subscription", IllegalStateError),
    ("link is being stolen", IllegalStateError),
    ("unknown subscription link", InvalidDestinationError),
    ("internal-error: temp-queue://", InvalidDestinationError),  # Classic: its connection is gone
    ("internal-error: temp-topic://", InvalidDestinationError),
)
# Of a login. Broker-J that has just been started may say so to a user that it lets in a moment later.
AMQP_DENIED_AT_FIRST: Final = "PERFORM_ACTION(connect) is denied"
# What to do where the broker's own words do not say it.
AMQP_HINTS: Final[tuple[tuple[str, str], ...]] = (
    ("non-durable message store cannot accept durable message", " Use send(…, persistent=False): it keeps nothing."),
    (
        "was refused: insufficient permissions",  # RabbitMQ 3, where a session begins
        " for the virtual host, '/' unless the URL names another (set_permissions)",
    ),
)
# Of an attach. Classic: the selector is the only field that it reads.
AMQP_SELECTOR_REFUSED: Final = "amqp:invalid-field"
