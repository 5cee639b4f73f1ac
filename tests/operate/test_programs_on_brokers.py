"""The program that a conversion writes, and ``policies=``, on the broker whose file it was.

Of each destination a message is failed to its end by one connection: it is delivered as often, and is then where the
explanation of the file says.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from tests.differential.files import text_of
from tests.policies.readers.documents import read
from tests.policies.readers.rabbitmq_site import site
from tests.promises.real.started import artemis_with, hornetq_with, running, setting, within

import redelivery
from redelivery import AckMode
from redelivery.broker import EmbeddedBroker
from redelivery.operate.convert import convert
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.testing.brokers.real import RealBroker
from redelivery.testing.brokers.spec import BrokerSpec, Site
from redelivery.testing.brokers.specs import activemq, artemis, hornetq, qpid

pytest.importorskip("proton")
SOON: Final = 15.0
OWN: Final = "jms.redeliveryPolicy.maximumRedeliveries=1&jms.redeliveryPolicy.initialRedeliveryDelay=0"


FILES: Final = {
    "old-qpid": "virtualhosts.xml",
    "activemq": "activemq.xml",
    "artemis": "broker.xml",
    "hornetq": "hornetq-configuration.xml",
    "qpid": "broker.json",
}


@dataclass(frozen=True)
class Case:
    """A file and its broker. ``ends``: the number of deliveries, and where the message is then, by destination."""

    spec: BrokerSpec | None
    text: Callable[[Site], str]
    ends: dict[str, tuple[int, str | None]]
    protocols: tuple[str, ...] = ("amqp", "stomp")
    embedded: tuple[str, ...] = ()  # the same of the embedded broker, where it has fewer
    keeps: bool = True  # what is persistent, as a broker with a memory store does not


RESENT: Final = """<redeliveryPlugin><redeliveryPolicyMap><redeliveryPolicyMap><redeliveryPolicyEntries>
<redeliveryPolicy queue="resent" maximumRedeliveries="2" initialRedeliveryDelay="1000" redeliveryDelay="1000"/>
</redeliveryPolicyEntries></redeliveryPolicyMap></redeliveryPolicyMap></redeliveryPlugin>"""


def classic_file(site: Site) -> str:
    entries = "".join(
        f"<policyEntry {place}><deadLetterStrategy><{strategy}/></deadLetterStrategy></policyEntry>"
        for place, strategy in (
            ('queue="own.>"', 'individualDeadLetterStrategy queuePrefix="DLQ."'),
            ('queue="own.shared"', "sharedDeadLetterStrategy"),
            ('queue="*.suffixed"', 'individualDeadLetterStrategy queuePrefix="" queueSuffix=".dead"'),
            ('topic="news.>"', 'individualDeadLetterStrategy topicPrefix="DLT."'),
        )
    )
    usual = text_of("classic", site.host, site.ports)
    plugins = '<discardingDLQBrokerPlugin dropAll="false" dropOnly="drop\\..*" reportInterval="0"/>' + RESENT
    usual = usual.replace(
        within("<policyEntries>.*</policyEntries>", usual), f"<policyEntries>{entries}</policyEntries>"
    )
    return usual.replace(within("<plugins>.*</plugins>", usual), f"<plugins>{plugins}</plugins>")


def broker_j_file(site: Site) -> str:
    document = json.loads(text_of("broker-j", site.host, site.ports))
    (node,) = document["virtualhostnodes"]
    host = json.loads(node["virtualHostInitialConfiguration"])
    bound = {"alternateBinding": {"destination": "dead"}}
    host["queues"] = [
        {"name": "dead", "type": "standard"},
        {"name": "bound", "type": "standard", "maximumDeliveryAttempts": 2, **bound},
        {"name": "gone", "type": "standard", "maximumDeliveryAttempts": 3},
        {"name": "any", "type": "standard"},
    ]
    made = {"maximumDeliveryAttempts": 4, **bound}
    policy = {"pattern": "made\\..*", "nodeType": "Queue", "attributes": made}
    host["nodeAutoCreationPolicies"] = [{**policy, "createdOnPublish": "true", "createdOnConsume": "true"}]
    node["virtualHostInitialConfiguration"] = json.dumps(host)
    return json.dumps(document)


def artemis_file(site: Site) -> str:
    """Also with a dead-letter queue that is not named as its address, and with one that the broker makes."""
    settings = (
        setting("short.#", dead_letter_address="Short.Dead", max_delivery_attempts=2),
        setting("short.more", max_delivery_attempts=3),
        setting("gone.*", max_delivery_attempts=2),
        setting("named.#", dead_letter_address="deadLetterAddress", max_delivery_attempts=2),
        setting("auto.#", dead_letter_address="DLA", auto_create_dead_letter_resources="true", max_delivery_attempts=2),
    )
    queues = ("named.a", "auto.a", "short.a", "short.more", "gone.a", "any", "Short.Dead")
    named = '<address name="deadLetterAddress"><anycast><queue name="deadLetterQueue"/></anycast></address>'
    return artemis_with("".join(settings), *queues)(site).replace("</addresses>", f"{named}</addresses>")


FIRST_OVER_AMQP: Final = "auto.a"  # a queue that the broker makes is there after it: STOMP has no word that makes it
READ_AT: Final = {"deadLetterAddress": "deadLetterAddress::deadLetterQueue"}

QPID: Final = """
<virtualhosts><virtualhost><name>localhost</name><localhost><queues>
  <deadLetterQueues>true</deadLetterQueues><maximumDeliveryCount>5</maximumDeliveryCount>
  <queue><name>counted</name><counted><maximumDeliveryCount>3</maximumDeliveryCount></counted></queue>
  <queue><name>gone</name>
    <gone><deadLetterQueues>false</deadLetterQueues><maximumDeliveryCount>2</maximumDeliveryCount></gone>
  </queue>
</queues></localhost></virtualhost></virtualhosts>
"""

CASES: Final = {
    "activemq": Case(
        activemq.SPEC,
        classic_file,
        {
            "own.a": (2, "DLQ.own.a"),
            "own.shared": (2, "ActiveMQ.DLQ"),
            "own.suffixed": (2, "DLQ.own.suffixed"),
            "x.suffixed": (2, "x.suffixed.dead"),
            "topic://news.eu": (2, "DLT.news.eu"),
            "drop.a": (2, None),
            "resent": (3, "ActiveMQ.DLQ"),
            "any": (2, "ActiveMQ.DLQ"),
            "topic://any": (2, "ActiveMQ.DLQ"),
            "topic://any.not-durable": (2, "ActiveMQ.DLQ"),
        },
    ),
    "artemis": Case(
        artemis.SPEC,
        artemis_file,
        {
            "short.a": (2, "Short.Dead"),
            "short.more": (3, "Short.Dead"),
            "gone.a": (2, None),
            "any": (10, None),
            "named.a": (2, "deadLetterAddress"),
            "auto.a": (2, "DLA::DLQ.auto.a"),
        },
        embedded=("amqp",),
    ),
    "hornetq": Case(
        hornetq.SPEC,
        hornetq_with(
            setting("jms.queue.short.#", dead_letter_address="jms.queue.Short.Dead", max_delivery_attempts=2)
            + setting("jms.queue.gone.*", max_delivery_attempts=2),
            *("jms.queue.short.a", "jms.queue.gone.a", "jms.queue.any", "jms.queue.Short.Dead"),
        ),
        {"short.a": (2, "jms.queue.Short.Dead"), "gone.a": (2, None), "any": (10, None)},
        ("stomp",),
    ),
    "qpid": Case(
        qpid.SPEC,
        broker_j_file,
        {"bound": (2, "dead"), "gone": (3, None), "made.a": (4, "dead"), "any": (5, None)},
        ("amqp",),
        keeps=False,
    ),
    "old-qpid": Case(
        None,  # nothing runs it any more
        lambda _: QPID,
        {"counted": (3, "counted_DLQ"), "gone": (2, None), "any": (5, "any_DLQ")},
        ("amqp",),
    ),
}
REAL: Final = [name for name, case in CASES.items() if case.spec is not None]


@dataclass
class Run:
    """A broker that runs with a file. ``options``: of connections to it."""

    policies: BrokerPolicies
    urls: dict[str, str]
    ends: dict[str, tuple[int, str | None]]
    options: dict[str, Any] = field(default_factory=dict)
    persistent: bool = True
    mode: AckMode = AckMode.TRANSACTED
    patience: float = 0.1  # seconds after which nothing comes any more

    def check_explanations(self) -> None:
        for name, (number, place) in self.ends.items():
            rules = self.policies.explain(name)
            assert rules.dead_letter == place or rules.dead_letter_queues == (place,), str(rules)
            assert rules.counts == "give-ups" or rules.maximum == number, str(rules)

    def fails(self, url: str, **options: Any) -> dict[str, int]:
        """Fail a message of each destination, on one connection; how often each is delivered."""
        found = {}
        mark = url.partition(":")[0]
        with redelivery.connect(url, client_id=f"c-{mark}", **self.options, **options) as connection:
            for name in self.ends:
                with connection.session(self.mode) as session:
                    consumer = (
                        session.durable_consumer(name, "sub")
                        if name.startswith("topic:") and not name.endswith("not-durable")
                        else session.consumer(name)
                    )
                    with connection.session() as sender:
                        sender.producer(name).send(name, persistent=self.persistent)
                    deliveries = 0
                    while consumer.receive(self.patience if deliveries >= self.ends[name][0] else SOON) is not None:
                        deliveries += 1
                        (session.rollback if session.transacted else session.recover)(cause=ValueError(name))
                    found[name] = deliveries
        return found

    def found(self, url: str) -> dict[str, list[Any]]:
        """Take what is in the places of dead letters."""
        places = dict.fromkeys(place for _, place in self.ends.values() if place)
        bodies: dict[str, list[Any]] = {}
        with redelivery.connect(url, **self.options) as connection, connection.session() as session:
            for place in places:
                with session.consumer(READ_AT.get(place, place).removeprefix("jms.queue.")) as consumer:
                    while message := consumer.receive(self.patience if place in bodies else 5 * self.patience):
                        bodies.setdefault(place, []).append(message.body)
        return {place: sorted(each) for place, each in bodies.items()}

    @property
    def expected(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name, (_, place) in self.ends.items():
            if place:
                found.setdefault(place, []).append(name)
        return {place: sorted(each) for place, each in found.items()}


def program(policies: BrokerPolicies) -> dict[str, Any]:
    namespace: dict[str, Any] = {}
    exec(compile(convert(policies, "python").text, "converted", "exec"), namespace)  # noqa: S102  # our own text
    return {name: namespace[name] for name in ("redelivery_policies", "dead_letter_strategies")}


def check(run: Run, protocols: tuple[str, ...]) -> None:
    run.check_explanations()
    ways = (program(run.policies), {"policies": run.policies})
    for number, options in enumerate(ways):
        url = run.urls[protocols[number % len(protocols)]]
        deliveries = run.fails(f"{url}?{OWN}", **options)
        assert deliveries == {name: most for name, (most, _) in run.ends.items()}, url
        assert run.found(url) == run.expected, url


@pytest.mark.long_form
@pytest.mark.timeout(150)
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("name", REAL)
def test_on_the_real_broker(name: str, swapped: bool, tmp_path: Path) -> None:
    case = CASES[name]
    protocols = case.protocols[::-1] if swapped else case.protocols
    assert case.spec is not None
    with running(case.spec, case.text) as broker:
        text = case.text(Site(tmp_path, tmp_path, tmp_path, broker.host, broker.ports))
        urls = {each: f"{each}://{broker.host}:{broker.ports[each]}" for each in case.protocols}
        ends = {name: end for name, end in case.ends.items() if not (swapped and name == FIRST_OVER_AMQP)}
        check(Run(read(text, FILES[name]), urls, ends, persistent=case.keeps, patience=0.7), protocols)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", CASES)
def test_on_the_embedded_broker(name: str, tmp_path: Path) -> None:
    case, path = CASES[name], tmp_path / FILES[name]
    ports = dict.fromkeys(("amqp", "stomp", "openwire"), 1)
    path.write_text(case.text(Site(tmp_path, tmp_path, tmp_path, "127.0.0.1", ports)), encoding="utf-8")
    with EmbeddedBroker(f"programs-{name}", stomp_port=0, amqp_port=0, config=path) as broker:
        urls = {"stomp": broker.stomp_url, "amqp": broker.amqp_url}
        check(Run(redelivery.policies.read(path), urls, case.ends), case.embedded or case.protocols)


def queue(name: str, kind: str = "quorum", **arguments: Any) -> dict[str, Any]:
    given = {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}
    return {"name": name, "durable": True, "auto_delete": False, "arguments": {"x-queue-type": kind, **given}}


def to(target: str) -> dict[str, str]:
    return {"dead_letter_exchange": "", "dead_letter_routing_key": target}


RABBITMQ: Final[dict[str, Any]] = {
    "queues": [
        queue("dead", "classic"),
        queue("by-policy.dead", "classic"),
        queue("limited", delivery_limit=2, **to("dead")),
        queue("plain", "classic", **to("dead")),
        queue("gone", delivery_limit=1),
        queue("routed", delivery_limit=1, dead_letter_exchange="letters"),
        queue("made.listed", delivery_limit=1),
        queue("made.unlisted", delivery_limit=1),
        queue("any-thing", delivery_limit=1),
    ],
    "exchanges": [{"name": "letters", "type": "fanout", "durable": True, "auto_delete": False, "arguments": {}}],
    "bindings": [
        {"source": "letters", "destination": "dead", "destination_type": "queue", "routing_key": "", "arguments": {}}
    ],
    "policies": [
        {
            "name": name,
            "pattern": pattern,
            "apply-to": "queues",
            "priority": 0,
            "definition": {"dead-letter-exchange": "", "dead-letter-routing-key": "by-policy.dead"},
        }
        for name, pattern in (("made", r"^made\."), ("unnamed", "y-thing$"))
    ],
}
RABBITMQ_ENDS: Final[dict[str, tuple[int, str | None]]] = {
    "limited": (3, "dead"),
    "plain": (2, "dead"),
    "gone": (2, None),
    "routed": (2, "dead"),
    "made.listed": (2, "by-policy.dead"),
    "made.unlisted": (2, "by-policy.dead"),
    "any-thing": (2, "by-policy.dead"),
}


@pytest.mark.parametrize("broker", [pytest.param("rabbitmq", marks=pytest.mark.long_form), "rabbitmq4"])
def test_on_rabbitmq(broker: str, request: pytest.FixtureRequest) -> None:
    """The definitions are read without two of the queues, as a list of policies alone has none."""
    real: RealBroker = request.getfixturevalue(f"redelivery_{broker}")
    unlisted = ("made.unlisted", "any-thing")
    listed = [each for each in RABBITMQ["queues"] if each["name"] not in unlisted]
    policies = read(json.dumps({**RABBITMQ, "queues": listed}), "definitions.json")
    with site(real, "programs") as there:
        there.import_(RABBITMQ)
        urls = {"amqp": real.amqp_url, "stomp": real.stomp_url}
        run = Run(policies, urls, RABBITMQ_ENDS, {"vhost": there.vhost}, mode=AckMode.CLIENT, patience=0.3)
        check(run, ("amqp", "stomp"))
