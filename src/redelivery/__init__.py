"""JMS-style sessions whose redelivery means the same on every broker.

import redelivery

with redelivery.connect("vm://example") as connection:
    with connection.session("transacted") as session:
        session.producer("orders").send("one")
        session.commit()
        message = session.consumer("orders").receive(timeout=5)
        session.rollback()      # it is redelivered after the policy's delay, and in the end dead-lettered
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from redelivery import aio as aio
    from redelivery import events as events
    from redelivery import otel as otel
    from redelivery import policies as policies
    from redelivery import prometheus as prometheus

    __version__: str
    from redelivery.client.connection.health import Health
    from redelivery.client.containers.outcomes import DeadLetter, Drop, Retry
    from redelivery.client.containers.sync import ListenerContainer
    from redelivery.client.entry.app import App
    from redelivery.client.entry.sync import Connection
    from redelivery.client.entry.sync_factory import ConnectionFactory, connect
    from redelivery.client.sync.browser import QueueBrowser
    from redelivery.client.sync.consumer import Consumer
    from redelivery.client.sync.producer import Producer
    from redelivery.client.sync.publisher import Publisher
    from redelivery.client.sync.session import Session
    from redelivery.model.capabilities import Capabilities, ConnectionMetaData
    from redelivery.model.content.dead_letters import DeadLetterInfo
    from redelivery.model.destinations import Destination, Queue, TemporaryQueue, TemporaryTopic, Topic
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
    from redelivery.model.passport import Passport
    from redelivery.model.values import Byte, Float, Long, Short
    from redelivery.policies.dead_letters import (
        BrokerDeadLetterStrategy,
        DeadLetterStrategy,
        DiscardingDeadLetterStrategy,
        IndividualDeadLetterStrategy,
        SharedDeadLetterStrategy,
    )
    from redelivery.policies.destinations.address_settings import AddressSettings, AddressSettingsMap
    from redelivery.policies.destinations.redelivery_map import RedeliveryPolicyMap
    from redelivery.policies.destinations.strategy_map import DeadLetterStrategyMap
    from redelivery.policies.prefetch import PrefetchPolicy
    from redelivery.policies.reconnect import ReconnectPolicy
    from redelivery.policies.redelivery import RedeliveryPolicy

__all__ = [
    "AckMode",
    "AddressSettings",
    "AddressSettingsMap",
    "App",
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
    "DeadLetter",
    "DeadLetterInfo",
    "DeadLetterStrategy",
    "DeadLetterStrategyMap",
    "Destination",
    "DiscardingDeadLetterStrategy",
    "Drop",
    "Float",
    "Health",
    "IllegalStateError",
    "InDoubtError",
    "IndividualDeadLetterStrategy",
    "InvalidClientIDError",
    "InvalidDestinationError",
    "InvalidSelectorError",
    "JMSError",
    "ListenerContainer",
    "Long",
    "Message",
    "MessageFormatError",
    "MessageNotWriteableError",
    "Passport",
    "PrefetchPolicy",
    "Producer",
    "ProtocolError",
    "Publisher",
    "Queue",
    "QueueBrowser",
    "ReconnectPolicy",
    "RedeliveryPolicy",
    "RedeliveryPolicyMap",
    "RequestTimeoutError",
    "ResourceAllocationError",
    "Retry",
    "SecurityError",
    "Session",
    "SharedDeadLetterStrategy",
    "Short",
    "TemporaryQueue",
    "TemporaryTopic",
    "Topic",
    "TransactionRolledBackError",
    "UnsupportedError",
    "connect",
]

# Imported when first asked for: pytest loads our plug-in, and so this module, in every run of every user.
_HOMES = {
    "redelivery.client.entry.app": ("App",),
    "redelivery.client.connection.health": ("Health",),
    "redelivery.client.containers.outcomes": ("DeadLetter", "Drop", "Retry"),
    "redelivery.client.containers.sync": ("ListenerContainer",),
    "redelivery.client.sync.browser": ("QueueBrowser",),
    "redelivery.client.entry.sync": ("Connection",),
    "redelivery.client.sync.consumer": ("Consumer",),
    "redelivery.client.entry.sync_factory": ("ConnectionFactory", "connect"),
    "redelivery.client.sync.producer": ("Producer",),
    "redelivery.client.sync.publisher": ("Publisher",),
    "redelivery.client.sync.session": ("Session",),
    "redelivery.model.capabilities": ("Capabilities", "ConnectionMetaData"),
    "redelivery.model.destinations": ("Destination", "Queue", "TemporaryQueue", "TemporaryTopic", "Topic"),
    "redelivery.model.errors": (
        "ConfigError",
        "ConnectError",
        "ConnectionLostError",
        "IllegalStateError",
        "InDoubtError",
        "InvalidClientIDError",
        "InvalidDestinationError",
        "InvalidSelectorError",
        "JMSError",
        "MessageFormatError",
        "MessageNotWriteableError",
        "ProtocolError",
        "RequestTimeoutError",
        "ResourceAllocationError",
        "SecurityError",
        "TransactionRolledBackError",
        "UnsupportedError",
    ),
    "redelivery.model.messages": ("Message",),
    "redelivery.model.modes": ("AckMode",),
    "redelivery.model.passport": ("Passport",),
    "redelivery.model.content.dead_letters": ("DeadLetterInfo",),
    "redelivery.model.values": ("Byte", "Float", "Long", "Short"),
    "redelivery.policies.destinations.address_settings": ("AddressSettings", "AddressSettingsMap"),
    "redelivery.policies.dead_letters": (
        "BrokerDeadLetterStrategy",
        "DeadLetterStrategy",
        "DiscardingDeadLetterStrategy",
        "IndividualDeadLetterStrategy",
        "SharedDeadLetterStrategy",
    ),
    "redelivery.policies.prefetch": ("PrefetchPolicy",),
    "redelivery.policies.reconnect": ("ReconnectPolicy",),
    "redelivery.policies.redelivery": ("RedeliveryPolicy",),
    "redelivery.policies.destinations.redelivery_map": ("RedeliveryPolicyMap",),
    "redelivery.policies.destinations.strategy_map": ("DeadLetterStrategyMap",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name == "__version__":
        return import_module("redelivery.model.version").VERSION
    if name in ("aio", "events", "otel", "policies", "prometheus"):
        return import_module(f"redelivery.{name}")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
