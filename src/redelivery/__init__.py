"""JMS-style sessions whose redelivery means the same on every broker.

import redelivery

with redelivery.connect("vm://example") as connection:
    with connection.session("transacted") as session:
        session.producer("orders").send("one")
        session.commit()
        message = session.consumer("orders").receive(timeout=5)
        session.rollback()      # it comes again after the policy's delay, and in the end it is dead-lettered
"""

import logging

from redelivery.client.connection import Connection, ConnectionMetaData
from redelivery.client.consumer import Consumer
from redelivery.client.factory import ConnectionFactory, connect
from redelivery.client.producer import Producer
from redelivery.client.session import Session
from redelivery.model.capabilities import Capabilities
from redelivery.model.destinations import Destination, Queue, Topic
from redelivery.model.errors import (
    ConfigError,
    ConnectError,
    ConnectionLostError,
    IllegalStateError,
    InDoubtError,
    InvalidClientIDError,
    InvalidDestinationError,
    InvalidSelectorError,
    JMSError,
    MessageFormatError,
    MessageNotWriteableError,
    ProtocolError,
    RequestTimeoutError,
    ResourceAllocationError,
    SecurityError,
    TransactionRolledBackError,
    UnsupportedError,
)
from redelivery.model.messages import Message
from redelivery.model.modes import AckMode
from redelivery.model.values import Byte, Float, Long, Short
from redelivery.policies.address_settings import AddressSettings, AddressSettingsMap
from redelivery.policies.dead_letters import (
    BrokerDeadLetterStrategy,
    DeadLetterStrategy,
    DiscardingDeadLetterStrategy,
    IndividualDeadLetterStrategy,
    SharedDeadLetterStrategy,
)
from redelivery.policies.prefetch import PrefetchPolicy
from redelivery.policies.redelivery import RedeliveryPolicy
from redelivery.policies.redelivery_map import RedeliveryPolicyMap

logging.getLogger(__name__).addHandler(logging.NullHandler())  # what is logged is the application's choice

__all__ = [
    "AckMode",
    "AddressSettings",
    "AddressSettingsMap",
    "BrokerDeadLetterStrategy",
    "Byte",
    "Capabilities",
    "ConfigError",
    "ConnectError",
    "Connection",
    "ConnectionFactory",
    "ConnectionLostError",
    "ConnectionMetaData",
    "Consumer",
    "DeadLetterStrategy",
    "Destination",
    "DiscardingDeadLetterStrategy",
    "Float",
    "IllegalStateError",
    "InDoubtError",
    "IndividualDeadLetterStrategy",
    "InvalidClientIDError",
    "InvalidDestinationError",
    "InvalidSelectorError",
    "JMSError",
    "Long",
    "Message",
    "MessageFormatError",
    "MessageNotWriteableError",
    "PrefetchPolicy",
    "Producer",
    "ProtocolError",
    "Queue",
    "RedeliveryPolicy",
    "RedeliveryPolicyMap",
    "RequestTimeoutError",
    "ResourceAllocationError",
    "SecurityError",
    "Session",
    "SharedDeadLetterStrategy",
    "Short",
    "Topic",
    "TransactionRolledBackError",
    "UnsupportedError",
    "connect",
]
