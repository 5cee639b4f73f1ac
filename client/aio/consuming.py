"""Makes a session's consumers: of destinations, and of named subscriptions to topics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack, cast, overload

from redelivery.client.aio.consumer import Consumer
from redelivery.client.aio.core import SessionCore
from redelivery.client.aio.listeners import ListenerLoop
from redelivery.client.aio.made import Closing, Made
from redelivery.client.arguments import CONSUMER_DEFAULTS, CONSUMER_SYNONYMS, ConsumerKeywords
from redelivery.client.ledger import ConsumerState
from redelivery.client.operations.attach import ConsumerSpec, attach
from redelivery.client.operations.destinations import unsubscribe
from redelivery.client.session.inbox import CloseAsked
from redelivery.client.shells.session import BaseSession
from redelivery.model.content.typed.converter import converter
from redelivery.model.content.typed.variable import BodyT
from redelivery.model.destinations import Destination, SubscriptionName
from redelivery.model.messages import Receipt
from redelivery.model.suggestions import suggesting


class MakesConsumers(BaseSession, Closing):
    """A session, as far as it makes consumers."""

    _core: SessionCore
    _loop: ListenerLoop
    _consumers = 0

    @overload
    def consumer(
        self,
        destination: Destination | str,
        *,
        body_type: Callable[..., BodyT],
        **options: Unpack[ConsumerKeywords],
    ) -> Made[Consumer[BodyT]]: ...
    @overload
    def consumer(
        self, destination: Destination | str, *, body_type: Any = None, **options: Unpack[ConsumerKeywords]
    ) -> Made[Consumer]: ...
    @suggesting(CONSUMER_SYNONYMS, CONSUMER_DEFAULTS)
    def consumer(
        self, destination: Destination | str, *, body_type: Any = None, **options: Unpack[ConsumerKeywords]
    ) -> Made[Consumer]:
        """A consumer of a queue or topic: ``await`` it, or ``async with``.

        Args:
            destination: a Queue, a Topic, or a str; ``"orders"`` is a queue. Wildcards are allowed.
            body_type: the type T of the bodies, which makes it a ``Consumer[T]``, which receives a ``Message[T]``.
                A pydantic model, a msgspec Struct, a dataclass, ``list[Order]``, …, or a function that takes the
                body: see `redelivery.model.content.typed.converter.converter`. None: they stay as they came.
            options: selector, no_local, prefetch, …: see `redelivery.client.arguments.ConsumerKeywords`.

        Raises, when awaited:
            InvalidDestinationError, InvalidSelectorError, SecurityError: the broker refuses it.
            UnsupportedError: the broker cannot do it.
            ConfigError: an option does not fit; the text names it.
        """
        return Made(self._consumer(None, destination, options, body_type=body_type))

    @overload
    def durable_consumer(
        self,
        topic: Destination | str,
        name: str,
        *,
        body_type: Callable[..., BodyT],
        **options: Unpack[ConsumerKeywords],
    ) -> Made[Consumer[BodyT]]: ...
    @overload
    def durable_consumer(
        self, topic: Destination | str, name: str, *, body_type: Any = None, **options: Unpack[ConsumerKeywords]
    ) -> Made[Consumer]: ...
    @suggesting(CONSUMER_SYNONYMS, CONSUMER_DEFAULTS)
    def durable_consumer(
        self, topic: Destination | str, name: str, *, body_type: Any = None, **options: Unpack[ConsumerKeywords]
    ) -> Made[Consumer]:
        """A consumer of a durable subscription: ``await`` it, or ``async with``.

        It keeps what is sent to its topic while it has no consumer, and belongs to the connection's client id. It
        serves one consumer at a time. With another topic, selector or no_local it is a new subscription: what the old
        one kept is gone (JMS 3.1 §8.3.3). `unsubscribe` removes it.

        Args:
            topic: a Topic, or a str like ``"topic://news"``.
            name: of the subscription.
            options: as of `consumer`; a ``prefetch`` of None is ``durable_topic`` of the connection's policy.

        Raises, when awaited:
            IllegalStateError: the connection has no client id, or the subscription is in use, or is a shared one.
            InvalidDestinationError, InvalidSelectorError, SecurityError: it is no topic, or the broker refuses it.
            UnsupportedError: the broker has none over this protocol; the text says why.
        """
        named = SubscriptionName(name, durable=True, shared=False)
        return Made(self._consumer(named, topic, options, body_type=body_type))

    @overload
    def shared_consumer(
        self,
        topic: Destination | str,
        name: str,
        *,
        body_type: Callable[..., BodyT],
        **options: Unpack[ConsumerKeywords],
    ) -> Made[Consumer[BodyT]]: ...
    @overload
    def shared_consumer(
        self, topic: Destination | str, name: str, *, body_type: Any = None, **options: Unpack[ConsumerKeywords]
    ) -> Made[Consumer]: ...
    @suggesting(CONSUMER_SYNONYMS, CONSUMER_DEFAULTS)
    def shared_consumer(
        self, topic: Destination | str, name: str, *, body_type: Any = None, **options: Unpack[ConsumerKeywords]
    ) -> Made[Consumer]:
        """A consumer of a shared subscription: ``await`` it, or ``async with``.

        Each message goes to one of its consumers (JMS 3.1 §8.3.2). It ends with its last consumer. Its name is the
        connection's client id's, where there is one, and else known to all connections. The arguments and errors are
        those of `durable_consumer`; ``no_local`` raises ConfigError.
        """
        named = SubscriptionName(name, durable=False, shared=True)
        return Made(self._consumer(named, topic, options, body_type=body_type))

    @overload
    def shared_durable_consumer(
        self,
        topic: Destination | str,
        name: str,
        *,
        body_type: Callable[..., BodyT],
        **options: Unpack[ConsumerKeywords],
    ) -> Made[Consumer[BodyT]]: ...
    @overload
    def shared_durable_consumer(
        self, topic: Destination | str, name: str, *, body_type: Any = None, **options: Unpack[ConsumerKeywords]
    ) -> Made[Consumer]: ...
    @suggesting(CONSUMER_SYNONYMS, CONSUMER_DEFAULTS)
    def shared_durable_consumer(
        self, topic: Destination | str, name: str, *, body_type: Any = None, **options: Unpack[ConsumerKeywords]
    ) -> Made[Consumer]:
        """A consumer of a subscription that is both: ``await`` it, or ``async with``.

        It keeps what is sent while it has no consumer (JMS 3.1 §8.3.4). Its name is the connection's client id's, where
        there is one, and else known to all connections. ``topic``, ``name``, options and errors are those of
        `shared_consumer`.
        """
        named = SubscriptionName(name, durable=True, shared=True)
        return Made(self._consumer(named, topic, options, body_type=body_type))

    async def unsubscribe(self, name: str) -> None:
        """Remove a durable subscription, shared or not, with what it holds (JMS 3.1 §8.3.3).

        Raises:
            InvalidDestinationError: there is none of that name, as far as the broker says so.
            IllegalStateError: it has a consumer, or messages that are not acknowledged yet. Not so over AMQP on Artemis
                and Broker-J, where it is a shared one of no client id that another connection consumes: the broker
                confirms, and keeps it.
            UnsupportedError: the broker has none over this protocol, or cannot find it by name; the text says why.
        """
        core = self._core
        await self._loop.inside("unsubscribe", lambda: core.do(unsubscribe(core, name)))

    async def _consumer(
        self,
        named: SubscriptionName | None,
        destination: Destination | str,
        options: ConsumerKeywords,
        workers: int = 0,
        body_type: Any = None,
    ) -> Consumer:
        core, to = self._core, converter(body_type)
        spec = ConsumerSpec.checked(core.options, destination, named, workers, **options)
        made: list[ConsumerState] = []

        async def make() -> Consumer:
            self._consumers += 1
            policy = await core.do(attach(core, spec, f"consumer {self._consumers} of {spec.link.destination}", made))
            return Consumer(core, made[0], self._loop, cast(Receipt, self), policy, to)

        try:
            return await self._loop.inside("consumer", make)
        except BaseException:
            for each in made:
                core.inbox.notify(CloseAsked(each))  # cancelled: it may be attached, and nobody has it
            raise
