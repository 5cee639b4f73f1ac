"""Every public coroutine of `redelivery.aio`, as calls to cancel; `test_every_call` fails where one has no row."""

from __future__ import annotations

from tests.client.aio.cancellation import of_connections, of_consumers, of_containers, of_sessions
from tests.client.aio.cancellation.scenes import Act, Check, Row, consumes, passes

from redelivery import AckMode

CLIENT, INDIVIDUAL, TRANSACTED = AckMode.CLIENT, AckMode.INDIVIDUAL, AckMode.TRANSACTED


def row(act: Act, *names: str, mode: AckMode = AckMode.AUTO, begin: Act = consumes, check: Check = passes) -> Row:
    return Row(names, act, mode, begin, check)


ROWS = (
    row(of_consumers.receive, "Consumer.receive"),
    row(of_consumers.receive, "Consumer.receive", mode=TRANSACTED),
    row(of_consumers.receive_nowait, "Consumer.receive_nowait"),
    row(of_consumers.receive_many, "Consumer.receive_many"),
    row(of_consumers.receive_body, "Consumer.receive_body"),
    row(of_consumers.async_for, "Consumer.__anext__"),
    row(of_consumers.waits_in_vain, "Consumer.receive"),
    row(of_consumers.listen, "Consumer.listen", check=of_consumers.listens_no_more),
    row(
        of_consumers.listen_none,
        "Consumer.listen",
        begin=of_consumers.begins_to_listen,
        check=of_consumers.listens_no_more,
    ),
    row(of_consumers.close_consumer, "Consumer.close", check=of_consumers.consumer_is_closed),
    row(of_consumers.consumer_block, "Closing.__aenter__", "Closing.__aexit__"),
    row(
        of_consumers.acknowledge_message, "Message.acknowledge", mode=INDIVIDUAL, check=of_sessions.acknowledged_or_held
    ),
    row(of_sessions.acknowledge, "Session.acknowledge", mode=CLIENT, check=of_sessions.acknowledged_or_held),
    row(of_sessions.recover, "Session.recover", mode=CLIENT),
    row(of_sessions.commit, "Session.commit", mode=TRANSACTED, check=of_sessions.whole_or_not),
    row(of_sessions.rollback, "Session.rollback", mode=TRANSACTED, check=of_sessions.undone),
    row(of_sessions.transaction, "Session.transaction", mode=TRANSACTED, check=of_sessions.whole_or_not),
    row(of_sessions.close_session, "Session.close", check=of_sessions.session_is_closed),
    row(of_sessions.close_until, check=of_sessions.session_is_closed),
    row(of_sessions.wait_until_idle, begin=of_consumers.begins_to_listen, check=of_consumers.listens_no_more),
    row(of_sessions.make_consumer, "MakesConsumers.consumer", "Made.__await__"),
    row(of_sessions.make_consumer_block, "Made.__aenter__", "Made.__aexit__"),
    row(of_sessions.make_producer, "Session.producer"),
    row(of_sessions.durable_consumer, "MakesConsumers.durable_consumer", check=of_sessions.can_be_made_again),
    row(of_sessions.shared_consumer, "MakesConsumers.shared_consumer"),
    row(of_sessions.shared_durable_consumer, "MakesConsumers.shared_durable_consumer"),
    row(
        of_sessions.unsubscribe,
        "MakesConsumers.unsubscribe",
        begin=of_sessions.subscribes,
        check=of_sessions.can_be_made_again,
    ),
    row(of_sessions.declare, "Session.declare"),
    row(of_sessions.delete, "Session.delete"),
    row(of_sessions.temporary_queue, "Session.temporary_queue"),
    row(of_sessions.temporary_topic, "Session.temporary_topic"),
    row(of_sessions.browse, "Session.browser", "QueueBrowser.__aiter__", "QueueBrowser.acknowledge"),
    row(of_sessions.close_browser, "QueueBrowser.close", begin=of_sessions.begins_to_browse),
    row(of_connections.send, "Producer.send", check=of_connections.in_doubt),
    row(of_connections.send_unconfirmed, "Producer.send", check=of_connections.in_doubt),
    row(of_connections.close_producer, "Producer.close"),
    row(
        of_connections.publish,
        "Publisher.send",
        begin=of_connections.makes_a_publisher,
        check=of_connections.can_publish,
    ),
    row(of_connections.make_publisher, "Connection.publisher", check=of_connections.in_doubt),
    row(of_connections.close_publisher, "Publisher.close", begin=of_connections.has_published),
    row(of_connections.request, "Connection.request", begin=of_connections.serves, check=of_connections.can_ask_again),
    row(of_connections.connect, "connect"),
    row(of_connections.connect_block, "ConnectionFactory.create_connection"),
    row(of_connections.make_session, "Connection.session"),
    row(of_connections.start, "Connection.start", begin=of_connections.is_stopped, check=of_connections.is_started),
    row(of_connections.stop, "Connection.stop", begin=of_consumers.begins_to_listen, check=of_connections.is_started),
    row(of_connections.wait, "Connection.wait"),
    row(of_connections.await_connection),
    row(of_connections.close_connection, "Connection.close", check=of_connections.connection_is_closed),
    row(
        of_containers.start_container,
        "ListenerContainer.start",
        begin=of_containers.has_a_container,
        check=of_containers.container_ends,
    ),
    row(
        of_containers.container_block,
        "ListenerContainer.__aenter__",
        "ListenerContainer.__aexit__",
        begin=of_containers.has_a_container,
    ),
    row(
        of_containers.run_container,
        "ListenerContainer.run",
        begin=of_containers.has_a_container,
        check=of_containers.container_ends,
    ),
    row(
        of_containers.drain_container,
        "ListenerContainer.drain",
        begin=of_containers.works,
        check=of_containers.container_has_ended,
    ),
    row(
        of_containers.stop_container,
        "ListenerContainer.stop",
        begin=of_containers.works,
        check=of_containers.container_has_ended,
    ),
)
