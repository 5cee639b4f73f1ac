"""What a conversion writes, as it stands, on the broker that it is for: a raw client fails a message to its end.

The test adds what the rules of redelivery say nothing about (ports, users, a store), and no queue.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import pytest
from tests.broker.raw_stomp import Raw
from tests.differential.files import text_of
from tests.operate.real_files import ASKED, FILES
from tests.policies.readers.rabbitmq_site import site
from tests.promises.real.started import running
from tests.run.forms import brief

from redelivery.operate.convert import convert
from redelivery.policies.brokers.formats import read_content
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.testing.brokers.native import NativeBroker
from redelivery.testing.brokers.real import RealBroker
from redelivery.testing.brokers.spec import BrokerSpec, Site
from redelivery.testing.brokers.specs import activemq, artemis, hornetq, qpid

pytest.importorskip("proton")
pytestmark = [pytest.mark.short_form, pytest.mark.timeout(300)]

_SHORT: Final = ("classic, shared",)
_PATIENCE: Final = 4.0  # seconds for a redelivery, or a dead letter


def sources(to: str) -> list[str]:
    """The files of other formats; in the short form one."""
    return [name for name, policies in FILES.items() if policies.format != to and (not brief() or name in _SHORT)]


def in_artemis(text: str, at: Site) -> str:
    ports = (
        f"<acceptor name='{each}'>tcp://{at.host}:{at.ports[each]}</acceptor>" for each in ("amqp", "openwire", "stomp")
    )
    usual = "<name>a</name><persistence-enabled>false</persistence-enabled><security-enabled>false</security-enabled>"
    usual += "<message-expiry-scan-period>500</message-expiry-scan-period>"
    ours = f'<core xmlns="urn:activemq:core">{usual}<acceptors>{"".join(ports)}</acceptors>'
    return text.replace('<core xmlns="urn:activemq:core">', ours)


def in_activemq(text: str, at: Site) -> str:
    connectors = "".join(
        f'<transportConnector name="{each}" uri="{scheme}://{at.host}:{at.ports[each]}"/>'
        for each, scheme in (("amqp", "amqp"), ("openwire", "tcp"), ("stomp", "stomp"))
    )
    ours = '<broker brokerName="a" persistent="false" useJmx="false" advisorySupport="false" '
    text = text.replace("<broker ", ours)
    return text.replace("</broker>", f"<transportConnectors>{connectors}</transportConnectors></broker>")


def in_broker_j(texts: Mapping[str, str], at: Site) -> str:
    """Each as a virtual host of its own, in one broker."""
    document = json.loads(text_of("broker-j", at.host, at.ports))
    document["ports"][0]["virtualhostaliases"] = [{"name": "names", "type": "nameAlias"}]
    document["virtualhostnodes"] = [
        {**node, "name": name, "defaultVirtualHostNode": "false"}
        for name, text in texts.items()
        for node in json.loads(text)["virtualhostnodes"]
    ]
    return json.dumps(document)


class OverAmqp:
    """A client of proton's engine. ``virtual_host``: of Broker-J. ``poison``: it rejects what it fails."""

    def __init__(self, broker: NativeBroker, *capabilities: str, virtual_host: str | None = None) -> None:
        self.url, self.capabilities, self.host = (
            f"amqp://{broker.host}:{broker.ports['amqp']}",
            capabilities,
            virtual_host,
        )
        self.poison = False

    @contextmanager
    def client(self) -> Iterator[Any]:
        from tests.broker.amqp.amqp_client import Peer

        peer = Peer(self.url, connect=False)
        peer.connection.hostname = self.host
        with peer:
            peer.until(lambda: bool(peer.connection.state & 16))  # REMOTE_ACTIVE
            yield peer

    def fail(self, queue: str, most: int) -> int:
        from tests.broker.amqp.amqp_client import MODIFIED

        with self.client() as peer:
            peer.send(peer.sender(queue, *self.capabilities), {"body": queue, "durable": self.host is None})
            link, deliveries = peer.receiver(queue, *self.capabilities, credit=1), 0
            while deliveries < most and self._comes(peer):
                delivery, _ = peer.one()
                deliveries += 1
                if self.poison:
                    peer.reject(delivery, "x:bad", "it cannot be processed")
                else:
                    peer.settle(delivery, MODIFIED, failed=True)
                link.flow(1)
                peer.flush()
            return deliveries

    def bodies(self, queue: str, number: int) -> list[str]:
        with self.client() as peer:
            peer.receiver(queue, *self.capabilities, credit=20)
            deadline = time.monotonic() + _PATIENCE
            while len(peer.received) < number and time.monotonic() < deadline:
                peer.step(0.2)
            return [message.body for _, message in peer.receive(len(peer.received))]

    def _comes(self, peer: Any) -> bool:
        deadline = time.monotonic() + _PATIENCE
        while not peer.received and time.monotonic() < deadline:
            peer.step(0.2)
        return bool(peer.received)


class OverStomp:
    """A client of HornetQ, which counts a delivery when its connection ends: ACK and NACK both consume it."""

    def __init__(self, broker: NativeBroker) -> None:
        self.url = f"stomp://{broker.host}:{broker.ports['stomp']}"

    def fail(self, queue: str, most: int) -> int:
        with Raw(self.url) as client:
            client.ok("SEND", queue.encode(), destination=f"jms.queue.{queue}")
        deliveries = 0
        while deliveries < most and self._taken(f"jms.queue.{queue}", "client"):
            deliveries += 1
        return deliveries

    def bodies(self, queue: str, number: int) -> list[str]:
        return [body for _ in range(number) for body in self._taken(queue, "auto")]

    def _taken(self, queue: str, ack: str) -> list[str]:
        with Raw(self.url, timeout=_PATIENCE) as client:
            client.subscribe(queue, ack=ack)
            try:
                return [client.next().body.decode()]
            except TimeoutError:
                return []


def ends_as_explained(client: OverAmqp | OverStomp, policies: BrokerPolicies, asked: Sequence[str]) -> None:
    """Fail a message of each queue: it is delivered as often, and is then where explain says, and nowhere else."""
    said = {queue: policies.explain(queue) for queue in asked}
    limited = {queue: rules for queue, rules in said.items() if rules.maximum is not None}
    assert limited
    deliveries = {queue: client.fail(queue, rules.maximum or 0) for queue, rules in limited.items()}
    assert deliveries == {queue: rules.maximum for queue, rules in limited.items()}
    ends: dict[str, list[str]] = {}
    for queue, rules in limited.items():
        for place in rules.dead_letter_queues:
            ends.setdefault(place, []).append(queue)
    found = {place: sorted(client.bodies(place, len(bodies))) for place, bodies in ends.items()}
    assert found == {place: sorted(bodies) for place, bodies in ends.items()}
    assert not any("no queue stands behind" in note for rules in limited.values() for note in rules.notes)


def converted(source: str, to: str) -> tuple[str, BrokerPolicies]:
    text = convert(FILES[source], to).text
    return text, read_content(text.encode(), "converted", format=to)


def started(spec: BrokerSpec, whole: Callable[[str, Site], str], text: str) -> Any:
    return running(spec, lambda at: whole(text, at))


@pytest.mark.parametrize("source", sources("artemis"))
def test_on_artemis(source: str) -> None:
    text, policies = converted(source, "artemis")
    with started(artemis.SPEC, in_artemis, text) as broker:
        ends_as_explained(OverAmqp(broker, "queue"), policies, ASKED[:2] if brief() else ASKED)


@pytest.mark.long_form
@pytest.mark.parametrize("source", sources("hornetq"))
def test_on_hornetq(source: str) -> None:
    text, policies = converted(source, "hornetq")
    made = [each for each in ASKED if f'<queue name="jms.queue.{each}">' in text]
    if not made:
        pytest.skip("HornetQ makes no queue by itself, and the file names none: a sentence says so")
    with started(hornetq.SPEC, lambda text, _: text, text) as broker:
        ends_as_explained(OverStomp(broker), policies, made)


@pytest.mark.long_form
@pytest.mark.parametrize("source", sources("activemq"))
def test_on_classic(source: str) -> None:
    text, policies = converted(source, "activemq")
    with started(activemq.SPEC, in_activemq, text) as broker:
        client = OverAmqp(broker)
        client.poison = True  # it is a client's word; then the plug-in sends it again
        ends_as_explained(client, policies, ASKED)


@pytest.mark.long_form
def test_on_broker_j() -> None:
    made = {name: converted(name, "broker_j") for name, each in FILES.items() if each.format != "broker_j"}
    with running(qpid.SPEC, lambda at: in_broker_j({name: text for name, (text, _) in made.items()}, at)) as broker:
        for name, (_, policies) in made.items():
            there = [each for each in ASKED if any(policies.rules.expressions()) or each in policies.rules.names()]
            ends_as_explained(OverAmqp(broker, virtual_host=name), policies, there)


@pytest.mark.parametrize("name", ["rabbitmq", "rabbitmq4"])
def test_on_rabbitmq(name: str, request: pytest.FixtureRequest) -> None:
    broker: RealBroker = request.getfixturevalue(f"redelivery_{name}")
    for source in sources("rabbitmq"):
        text, policies = converted(source, "rabbitmq")
        document = json.loads(text)
        queues = [each["name"] for each in document["queues"]]
        with site(broker, "converted") as at:
            for each in (document, *document["policies"], *document["queues"]):
                each.pop("vhosts" if each is document else "vhost", None)
            at.import_(document)
            for queue in queues:
                said = policies.explain(queue)
                assert at.publish("", queue, queue) == 200
                most, deliveries = said.maximum or 25, 0
                while deliveries < most and _comes(at, queue):
                    deliveries += 1
                ends = said.dead_letter_queues if said.maximum is not None else (queue,)
                assert (source, queue, deliveries) == (source, queue, most)
                for place in ends:
                    assert queue in _all(at, place, queue), (source, queue, place)


def _comes(at: Any, queue: str) -> bool:
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        if at.get(queue, "reject_requeue_true"):
            return True
        time.sleep(0.02)
    return False


def _all(at: Any, place: str, body: str) -> list[str]:
    deadline, found = time.monotonic() + _PATIENCE, list[str]()
    while body not in found and time.monotonic() < deadline:
        found += at.get(place, "ack_requeue_false", 100)
        time.sleep(0.02)
    return found
