"""Attaching, addresses, credit, drain, browsing, dynamic nodes and the anonymous relay."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import Any

import proton
import pytest
from proton import Described, Terminus, symbol, ulong
from tests.broker.amqp.amqp_client import ACCEPTED, Peer, Refused

from redelivery.broker import EmbeddedBroker
from redelivery.broker.servers.amqp.links.incoming import LARGEST

CLOSED = proton.Endpoint.REMOTE_CLOSED


def bodies(client: Peer, number: int) -> list[object]:
    return [message.body for _, message in client.receive(number)]


def left(broker: EmbeddedBroker, queue: str = "q") -> list[object]:
    return [message.body for message in broker.messages(queue)]


@pytest.mark.parametrize("address", ["queue://q", "q"])
def test_an_address_is_a_queue_unless_it_says_otherwise(client: Peer, broker: EmbeddedBroker, address: str) -> None:
    client.send(client.sender(address), "m")
    assert left(broker) == ["m"]
    client.receiver(address)
    client.settle(client.one()[0], ACCEPTED)


@pytest.mark.parametrize(("address", "capability"), [("topic://news", ()), ("news", ("topic",))])
def test_a_topic_reaches_each_subscriber_and_keeps_nothing(
    client: Peer, broker: EmbeddedBroker, address: str, capability: tuple[str, ...]
) -> None:
    sender = client.sender(address, *capability)
    client.send(sender, "nobody hears it")
    receivers = [client.receiver(address, *capability), client.receiver("topic://>")]
    client.send(sender, "m")
    assert bodies(client, 2) == ["m", "m"]
    assert client.quiet()
    assert {link.name for link in receivers} == {link.name for link in receivers if link.credit == 9}
    assert broker.queue_depth("news") == 0


def test_a_pattern_is_consumed_and_not_sent_to(client: Peer) -> None:
    client.receiver("orders.*")
    client.send(client.sender("orders.eu"), "m")
    assert bodies(client, 1) == ["m"]
    with pytest.raises(Refused, match=r"not-found.*pattern"):
        client.sender("orders.*")


@pytest.mark.parametrize("address", [" outer ", "queue://"])
def test_what_is_no_address_is_refused(client: Peer, address: str) -> None:
    with pytest.raises(Refused, match="amqp:not-found"):
        client.sender(address)
    with pytest.raises(Refused, match="amqp:not-found"):
        client.receiver(address)
    client.send(client.sender("q"), "the session goes on")


def test_credit_is_kept_exactly(client: Peer) -> None:
    receiver = client.receiver("q", credit=2)
    client.send(client.sender("q"), *map(str, range(6)))
    assert bodies(client, 2) == ["0", "1"]
    assert client.quiet()
    receiver.flow(3)
    assert bodies(client, 3) == ["2", "3", "4"]
    assert client.quiet()


def test_credit_is_not_renewed_by_accepting(client: Peer) -> None:
    client.send(client.sender("q"), *map(str, range(4)))
    client.receiver("q", credit=2)
    for delivery, _ in client.receive(2):
        client.settle(delivery, ACCEPTED)
    assert client.quiet()


def test_a_drain_gives_what_is_there_and_takes_the_rest_of_the_credit_back(client: Peer) -> None:
    client.send(client.sender("q"), "a", "b")
    receiver = client.receiver("q", credit=0)
    receiver.drain(10)
    assert bodies(client, 2) == ["a", "b"]
    client.until(lambda: receiver.credit == 0)
    client.send(client.sender("q"), "c")
    assert client.quiet()
    receiver.drain_mode = False
    receiver.flow(1)
    assert bodies(client, 1) == ["c"]


def test_a_drain_of_an_empty_queue_is_answered_at_once(client: Peer) -> None:
    receiver = client.receiver("q", credit=0)
    receiver.drain(5)
    client.until(lambda: receiver.credit == 0)
    assert not client.received


def test_consumers_take_turns(client: Peer, broker: EmbeddedBroker) -> None:
    with Peer(broker.amqp_url) as other:
        client.receiver("q")
        other.receiver("q")
        client.send(client.sender("q"), *map(str, range(6)))
        assert sorted(str(body) for body in bodies(client, 3) + bodies(other, 3)) == list("012345")


def test_presettled_deliveries_are_gone_when_they_are_sent(client: Peer, broker: EmbeddedBroker) -> None:
    client.send(client.sender("q"), "a", "b")
    client.receiver("q", credit=1, settled=True)
    delivery, _ = client.one()
    assert delivery.settled
    assert client.quiet()
    assert left(broker) == ["b"]


def test_a_presettled_send_is_taken_without_an_answer(client: Peer, broker: EmbeddedBroker) -> None:
    sender = client.sender("q", settled=True)
    for number in range(2000):  # more than the credit at first
        client.until(lambda: sender.credit > 0)
        client.put(sender, str(number))
    assert client.quiet()
    assert broker.queue_depth("q") == 2000


def test_a_link_may_be_detached_and_its_name_be_used_again(client: Peer) -> None:
    for _ in range(3):
        link: Any = client.session.sender("same")
        link.target.address = "q"
        client.attach(link)
        client.until(partial(attrgetter("credit"), link))
        client.send(link, "m")
        link.detach()
        client.until(lambda: "same" in client.detached)
        client.detached.clear()
        link.free()


def test_browsing_takes_nothing_and_ends(client: Peer, broker: EmbeddedBroker) -> None:
    client.send(client.sender("q"), "a", "b", "c")
    client.receiver("q", credit=1)
    client.one()
    browser = client.receiver("q", browse=True, credit=2)
    assert browser.remote_source.distribution_mode == Terminus.DIST_MODE_COPY
    seen = client.receive(2)
    for delivery, _ in seen:
        client.settle(delivery, ACCEPTED)
    browser.drain(10)
    seen += client.receive(1)
    client.until(lambda: browser.credit == 0)
    assert [(message.body, message.delivery_count) for _, message in seen] == [("a", 0), ("b", 0), ("c", 0)]
    assert left(broker) == ["a", "b", "c"]


NUMBER, NAME = ulong(0x0000468C00000004), symbol("apache.org:selector-filter:string")


@pytest.mark.parametrize(("key", "descriptor"), [("jms-selector", NUMBER), ("mine", NAME), (str(NAME), NAME)])
@pytest.mark.parametrize("browse", [False, True])
def test_a_selector_chooses_whatever_names_it(
    client: Peer, broker: EmbeddedBroker, key: str, descriptor: Any, browse: bool
) -> None:
    for number in range(4):
        broker.send("q", f"m{number}", properties={"n": number, "colour": "red" if number % 2 else "blue"})
    selector = "colour = 'red' AND n > 1"
    receiver = client.receiver("q", browse=browse, filters={key: Described(descriptor, selector)})
    assert receiver.remote_source.filter.next() is not None, "it is met, and so echoed"
    assert bodies(client, 1) == ["m3"]
    assert client.quiet()


@pytest.mark.parametrize("value", ["a == 1", 5, None])
def test_a_bad_selector_is_an_invalid_field(client: Peer, value: object) -> None:
    with pytest.raises(Refused, match=r"amqp:invalid-field: .*selector"):
        client.receiver("q", filters={"jms-selector": Described(NUMBER, value)})


def test_no_local_keeps_ones_own_messages_of_a_topic_away(client: Peer, broker: EmbeddedBroker) -> None:
    no_local = {"no-local": Described(ulong(0x0000468C00000003), [])}
    receiver = client.receiver("topic://t", filters=no_local)
    assert receiver.remote_source.filter.next() is not None
    client.send(client.sender("topic://t"), "own")
    with Peer(broker.amqp_url) as other:
        other.send(other.sender("topic://t"), "another's")
    assert bodies(client, 1) == ["another's"]
    with pytest.raises(Refused, match="amqp:not-implemented: no_local on queue://q"):
        client.receiver("q", filters=no_local)


def test_a_filter_that_is_not_known_is_not_echoed(client: Peer) -> None:
    receiver = client.receiver("q", filters={"x-own": Described(symbol("x-own"), "?")})
    assert receiver.remote_source.filter.next() is None


def durable(link: Any) -> None:
    link.source.durability = Terminus.DELIVERIES
    link.source.expiry_policy = Terminus.EXPIRE_NEVER


def looked_up(link: Any) -> None:
    link.source.type = Terminus.UNSPECIFIED


def test_a_durable_subscription_outlives_its_detach_and_ends_with_its_close(client: Peer) -> None:
    def attach() -> Any:
        return client.receiver("topic://t", "topic", name="sub", set_up=durable)

    receiver = attach()
    assert receiver.remote_source.durability == Terminus.DELIVERIES
    client.detach(receiver)
    sender = client.sender("topic://t")
    client.send(sender, "kept")
    receiver = attach()
    assert bodies(client, 1) == ["kept"]
    client.end(receiver)
    client.send(sender, "lost")
    attach()
    client.send(sender, "new")
    assert bodies(client, 1) == ["new"]


def test_a_durable_subscription_is_found_by_its_name_and_closed_away(client: Peer) -> None:
    receiver = client.receiver("topic://t", "topic", name="sub", set_up=durable)
    client.detach(receiver)
    found = client.receiver(None, name="sub", set_up=looked_up, credit=0)
    assert found.remote_source.address == "topic://t"
    client.end(found)
    with pytest.raises(Refused, match=r"amqp:not-found: .*no durable subscription 'sub'"):
        client.receiver(None, name="sub", set_up=looked_up, credit=0)


def test_a_durable_subscription_in_use_is_refused_to_others(client: Peer, broker: EmbeddedBroker) -> None:
    client.receiver("topic://t", "topic", name="sub", set_up=durable)
    for address, set_up in (("topic://t", durable), (None, looked_up)):
        other = Peer(broker.amqp_url, container=client.connection.container)
        with other, pytest.raises(Refused, match=r"amqp:illegal-state: .*in use"):
            other.receiver(address, "topic", name="sub", set_up=set_up)


@pytest.mark.parametrize("capability", ["temporary-queue", "temporary-topic"])
def test_a_dynamic_node_lives_as_long_as_its_link(client: Peer, broker: EmbeddedBroker, capability: str) -> None:
    receiver = client.receiver(None, capability, dynamic=True)
    address = receiver.remote_source.address
    assert address.startswith(capability.replace("temporary", "temp") + "://")
    with Peer(broker.amqp_url) as other:
        sender = other.sender(address)
        other.send(sender, "m")
        assert bodies(client, 1) == ["m"]
        with pytest.raises(Refused, match="only the connection"):
            other.receiver(address)
        client.end(receiver)
        with pytest.raises(Refused, match=r"amqp:not-found.*does not exist"):
            other.send(sender, "late")
        with pytest.raises(Refused, match="does not exist"):
            other.sender(address)
        with pytest.raises(Refused, match="only the connection"):
            other.receiver(address)


def test_a_dynamic_target_makes_a_queue_to_consume_by_another_link(client: Peer, broker: EmbeddedBroker) -> None:
    sender = client.sender(None, dynamic=True)
    address = sender.remote_target.address
    client.send(sender, "kept")
    assert broker.queue_depth(address) == 1
    client.receiver(address, "temporary-queue", credit=1)
    assert bodies(client, 1) == ["kept"]
    client.drop()
    with Peer(broker.amqp_url) as other:
        while broker.queue_depth(address):
            assert other.quiet()
        with pytest.raises(Refused, match="does not exist"):
            other.sender(address)


def test_patterns_do_not_match_temporary_queues(client: Peer, broker: EmbeddedBroker) -> None:
    client.receiver(">")
    client.send(client.sender(None, dynamic=True), "private")
    assert client.quiet()
    assert broker.queue_depth("ActiveMQ.DLQ") == 0


def test_an_anonymous_link_sends_where_each_message_says(client: Peer, broker: EmbeddedBroker) -> None:
    relay = client.sender(None)
    receiver = client.receiver("topic://t")
    client.send(relay, {"body": "a", "address": "q"})
    client.send(relay, {"body": "b", "address": "topic://t"})
    client.send(relay, {"body": "c", "address": "t", "annotations": {symbol("x-opt-jms-dest"): proton.byte(1)}})
    assert left(broker) == ["a"]
    assert bodies(client, 2) == ["b", "c"]
    assert receiver.credit == 8
    with pytest.raises(Refused, match=r"not-found.*`to`"):
        client.send(relay, "nowhere")
    with pytest.raises(Refused, match="pattern"):
        client.send(relay, {"body": "d", "address": "a.>"})
    coordinator = client.coordinator()
    transaction = client.declare(coordinator)
    client.send(relay, {"body": "e", "address": "q"}, transaction=transaction)
    client.discharge(coordinator, transaction)
    assert left(broker) == ["a", "e"]


def test_a_session_that_ends_takes_its_links_along(client: Peer) -> None:
    client.send(client.sender("q"), "m")
    first, client.session = client.session, client.connection.session()
    client.session.open()
    receiver = client.receiver("q", credit=5)
    client.one()
    client.session.close()
    client.until(lambda: bool(client.session.state & CLOSED))
    assert receiver.credit == 4
    client.session = first
    client.receiver("q")
    assert bodies(client, 1) == ["m"]


def test_message_groups_stick_to_their_consumer(client: Peer, broker: EmbeddedBroker) -> None:
    with Peer(broker.amqp_url) as other:
        client.receiver("q")
        other.receiver("q")
        client.send(client.sender("q"), *({"body": n, "group_id": "g"} for n in range(4)))
        assert bodies(client, 4) == [0, 1, 2, 3]
        assert other.quiet()


def test_what_was_aborted_does_not_count_as_buffered(broker: EmbeddedBroker) -> None:
    with Peer(broker.amqp_url) as client:
        sender = client.sender("q")
        for _ in range(3):  # more than one message may have, all together
            delivery = sender.delivery("aborted")
            sender.stream(bytes(LARGEST * 2 // 5))
            client.flush()
            delivery.abort()
        client.send(sender, "whole")
    assert [message.body for message in broker.messages("q")] == ["whole"]
