"""Looking at a connection, its sessions and their consumers, from any thread and without waiting."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from redelivery.client.connection.health import Health, ListenerHealth, SubscriptionHealth
from redelivery.client.connection.reconnecting import ReconnectingConnection
from redelivery.client.connection.state import ConnectionState
from redelivery.client.ledger import ConsumerState
from redelivery.client.ledger.stages import CLOSED, CLOSING, ENDED
from redelivery.client.lifecycle import ConnectionStage
from redelivery.client.session.state import SessionState


def health_of(connection: ReconnectingConnection) -> Health:
    """Look; from any thread, without waiting for anything."""
    sessions = connection.sessions
    away = tuple(away_reason(connection))
    listeners = (*_containers(connection), *_listeners(connection, sessions, away))
    subscriptions = tuple(_subscriptions(connection, away))
    reasons = [*away]
    for listener in listeners:
        reasons += [f"{listener.destination} {listener.name}: {each}" for each in listener.reasons if each not in away]
    for subscription in subscriptions:
        reasons += [f"subscription {subscription.name!r}: {each}" for each in subscription.reasons if each not in away]
    if connection.dead is not None:
        reasons.append(f"a listener is called no more: {connection.dead}")
    return Health(
        connected=not away,
        last_loss=connection.last_loss,
        listeners=listeners,
        subscriptions=subscriptions,
        blocked_sends=blocked_sends(sessions),
        reasons=tuple(dict.fromkeys(reasons)),
    )


def blocked_sends(sessions: Iterable[SessionState]) -> int:
    """The messages that the broker does not take now: they wait for its credit, or for room in the socket."""
    return sum(each.epoch.channel.blocked_sends for each in sessions)


def away_reason(connection: ConnectionState) -> Iterator[str]:
    """Say why it is not connected; nothing where it is."""
    life = connection.life
    if life.ended:
        yield life.state
    elif life.stage is ConnectionStage.RECOVERING:
        loss = connection.last_loss
        since = "" if loss is None else f" since {loss.at:%Y-%m-%d %H:%M:%S} UTC: {loss.error}"
        yield f"the connection is away{since}"


def _containers(connection: ReconnectingConnection) -> Iterator[ListenerHealth]:
    for reference in connection.containers.keyrefs():
        container = reference()
        if container is not None and not container._ended:
            yield ListenerHealth(*container._about, container.reasons)


def _listeners(
    connection: ReconnectingConnection, sessions: Iterable[SessionState], away: tuple[str, ...]
) -> Iterator[ListenerHealth]:
    for session in sessions:
        for consumer, name in tuple(session.handlers.items()):
            spec = consumer.link.spec
            if consumer.stage not in (CLOSING, CLOSED):
                named = None if spec.subscription is None else spec.subscription.name
                yield ListenerHealth(spec.destination, name, named, away or tuple(_why(connection, consumer)))


def _why(connection: ReconnectingConnection, consumer: ConsumerState) -> Iterator[str]:
    destination = consumer.link.destination
    if consumer.stage is ENDED:
        again = ", and it is attached again" if consumer.listening else ""
        yield f"the broker has ended its consumer{again}: {consumer.error}"
    if not connection.started:
        yield "the connection is stopped"
    yield from stuck_reason(connection.shared.dead_letters.stuck(destination))


def stuck_reason(count: int) -> Iterator[str]:
    """Say that messages cannot be dead-lettered, where there are such."""
    if count:
        yield f"{count} messages cannot be dead-lettered now"


def _subscriptions(connection: ReconnectingConnection, away: tuple[str, ...]) -> Iterator[SubscriptionHealth]:
    for named, consumers in connection.shared.subscriptions.consumed():
        alive = [each for each in consumers if each.stage is not ENDED]
        ended = tuple(f"the broker has ended its consumer: {each.error}" for each in consumers[:1] if not alive)
        topic = consumers[0].link.spec.destination
        yield SubscriptionHealth(named.name, topic, named.durable, named.shared, len(alive), away or ended)
