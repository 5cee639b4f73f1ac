"""What of a file decides about redelivery, expiry or dead letters, and is not modelled, is said: "not read: …"."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Final

import pytest
from tests.policies.readers import schemas
from tests.policies.readers.documents import ARTEMIS, CLASSIC, address_settings, classic, policy_entries, read

from redelivery.operate import as_json
from redelivery.operate.convert import convert
from redelivery.operate.diff import diff
from redelivery.operate.doctor.doctor import examine_file
from redelivery.operate.simulate import simulate
from redelivery.operate.table import table
from redelivery.policies.brokers.artemis import decisive as artemis
from redelivery.policies.brokers.artemis.names import HORNETQ_NAMES, NAMES
from redelivery.policies.brokers.broker_j import names as broker_j
from redelivery.policies.brokers.classic import decisive as activemq
from redelivery.policies.brokers.classic import names as of_activemq
from redelivery.policies.brokers.classic.arrivals import ARRIVALS
from redelivery.policies.brokers.clients.url import reader as client_url
from redelivery.policies.brokers.formats import read_url
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.brokers.qpid import names as qpid
from redelivery.policies.brokers.rabbitmq import names as rabbitmq
from redelivery.policies.files.places import Decisive
from redelivery.testing.brokers.specs import SPECS

_VALUES: Final = ("true", "false", "7", "0", "drop", "kill", "force", "never", "ring", "lvq", "reject", "x")

HORNETQ = '<configuration xmlns="urn:hornetq"><address-settings>{}</address-settings></configuration>'
HOST = {"name": "h", "modelVersion": "9.0"}


def _queue_of_artemis(name: str, value: str) -> BrokerPolicies:
    inside = f"<durable>{value}</durable>" if name == "durable" else ""
    attribute = "" if inside else f'{name}="{value}"'
    queue = f'<anycast><queue name="x" {attribute}>{inside}</queue></anycast>'
    return read(ARTEMIS.format(f'<addresses><address name="x">{queue}</address></addresses>'))


CUSTOM_RESOURCE = """
apiVersion: broker.amq.io/v1beta1
kind: ActiveMQArtemis
metadata: {{name: a}}
spec:
  addressSettings:
    addressSetting:
    - match: x
      {}
"""
WILDFLY = (
    '<server xmlns="urn:jboss:domain:19.0"><profile><subsystem xmlns="urn:jboss:domain:messaging-activemq:13.0">'
    '<server name="default" {}>{}</server></subsystem></profile></server>'
)


def _wildfly(inside: str, attributes: str = "") -> BrokerPolicies:
    return read(WILDFLY.format(attributes, inside), "standalone.xml")


def _properties(line: str) -> BrokerPolicies:
    return read(line, "broker.properties")


def _classic(broker: str, inside: str = "") -> BrokerPolicies:
    return read(CLASSIC.format(inside).replace('schedulerSupport="true"', broker))


def _broker_j(**members: object) -> BrokerPolicies:
    return read(json.dumps({**HOST, **members}), "x.json")


def _rabbit(**members: object) -> BrokerPolicies:
    return read(json.dumps({"vhosts": [{"name": "/"}], **members}), "x.json")


def _policy(definition: Mapping[str, str]) -> dict[str, object]:
    return {"name": "p", "vhost": "/", "pattern": ".*", "definition": definition}


def _queue(name: str) -> dict[str, object]:
    """A queue of a type that has this setting."""
    kind = "stream" if name == "max-age" else "quorum"
    return {"name": "x", "vhost": "/", "arguments": {"x-queue-type": kind}}


KINDS: Final[Mapping[str, tuple[Mapping[str, Decisive], Callable[[str, str], BrokerPolicies]]]] = {
    "artemis address-setting": (artemis.ADDRESS_SETTINGS, lambda name, value: read(address_settings(x={name: value}))),
    "hornetq address-setting": (
        artemis.ADDRESS_SETTINGS,
        lambda name, value: read(
            HORNETQ.format(f'<address-setting match="jms.queue.x"><{name}>{value}</{name}></address-setting>')
        ),
    ),
    "wildfly address-setting": (
        artemis.ADDRESS_SETTINGS,
        lambda name, value: _wildfly(f'<address-setting name="jms.queue.x" {name}="{value}"/>'),
    ),
    "wildfly server": (artemis.CORE, lambda name, value: _wildfly("", f'{name}="{value}"')),
    "artemis properties of an address": (
        artemis.PROPERTY_SETTINGS,
        lambda name, value: _properties(f"addressSettings.x.{name}={value}"),
    ),
    "artemis properties of a queue": (
        artemis.PROPERTY_QUEUES,
        lambda name, value: _properties(f"addressConfigurations.x.queueConfigs.x.{name}={value}"),
    ),
    "artemis properties": (artemis.PROPERTIES, lambda name, value: _properties(f"{name}={value}")),
    "kubernetes addressSetting": (
        artemis.CAMEL_SETTINGS,
        lambda name, value: read(CUSTOM_RESOURCE.format(f"{name}: {value}"), "cr.yaml"),
    ),
    "artemis queue": (artemis.QUEUES, _queue_of_artemis),
    "artemis core": (artemis.CORE, lambda name, value: read(ARTEMIS.format(f"<{name}>{value}</{name}>"))),
    "activemq policyEntry": (
        activemq.ENTRY,
        lambda name, value: classic(policy_entries(f'<policyEntry queue="x" {name}="{value}"/>')),
    ),
    "activemq broker": (activemq.BROKER, lambda name, value: _classic(f'{name}="{value}"')),
    "qpid queue": (broker_j.OF_A_QUEUE_UNREAD, lambda name, value: _broker_j(queues=[{"name": "x", name: value}])),
    "qpid queue arguments": (
        broker_j.OF_A_QUEUE_UNREAD,
        lambda name, value: _broker_j(queues=[{"name": "x", "arguments": {name: value}}]),
    ),
    "qpid queues made": (
        broker_j.OF_A_QUEUE_UNREAD,
        lambda name, value: _broker_j(nodeAutoCreationPolicies=[{"pattern": "x", "attributes": {name: value}}]),
    ),
    "qpid host": (broker_j.OF_A_HOST_UNREAD, lambda name, value: _broker_j(**{name: value})),
    "qpid context": (broker_j.OF_A_HOST_UNREAD, lambda name, value: _broker_j(context={name: value})),
    "qpid exchange": (
        broker_j.OF_AN_EXCHANGE_UNREAD,
        lambda name, value: _broker_j(exchanges=[{"name": "x", name: value}]),
    ),
    "rabbitmq policy": (
        {name: each for name, each in rabbitmq.UNREAD.items() if not name.startswith("x-")},
        lambda name, value: _rabbit(policies=[_policy({name: value})], queues=[_queue(name)]),
    ),
    "rabbitmq operator policy": (
        {name: each for name, each in rabbitmq.UNREAD.items() if not name.startswith("x-")},
        lambda name, value: _rabbit(operator_policies=[_policy({name: value})], queues=[_queue(name)]),
    ),
    "rabbitmq queue": (
        {name: each for name, each in rabbitmq.UNREAD.items() if name.startswith("x-")},
        lambda name, value: _rabbit(queues=[{"name": "x", "vhost": "/", "arguments": {name: value}}]),
    ),
    "qpid's old broker": (
        qpid.UNREAD,
        lambda name, value: read(
            f"<virtualhosts><virtualhost><name>h</name><h><x><{name}>{value}</{name}></x></h></virtualhost></virtualhosts>"
        ),
    ),
    "a client's URL": (client_url.UNREAD, lambda name, value: read_url(f"tcp://host:61616?{name}={value}")),
}
CASES: Final = [(kind, name) for kind, (table, _) in KINDS.items() for name in table]


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_each_setting_that_decides_is_said_at_the_foot(kind: str, name: str) -> None:
    table_of, made = KINDS[kind]
    value = next(each for each in _VALUES if table_of[name].why_of(each))
    found = made(name, value)
    (line,) = [each.line for each in found.not_read if each.name.startswith(f"{name} = ")]
    assert line.startswith(f"not read: {name} = {value} (")
    assert line.endswith(table_of[name].why)
    if kind != "a client's URL":
        assert re.search(r"\.(xml|json|yaml|properties):\d+:\d+\)", line)
    assert line in str(found.explain("x")).replace("\n  ", "\n").splitlines()


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, name in CASES if "(?!" in KINDS[kind][0][name].values.pattern]
)
def test_a_default_that_is_written_out_decides_nothing(kind: str, name: str) -> None:
    table_of, made = KINDS[kind]
    values = ("-1", "0", "30000", "400", "permanent", "close", "false")
    usual = next(each for each in values if not table_of[name].why_of(each))
    assert [each for each in made(name, usual).not_read if each.name.startswith(name)] == []


def test_it_is_said_wherever_the_file_is_looked_at() -> None:
    text = address_settings(orders={"max_delivery_attempts": 3, "address_full_policy": "DROP"})
    found = read(text, "broker.xml")
    (unread,) = found.not_read
    assert unread.line == (
        "not read: address-full-policy = DROP (broker.xml:3:99): an address that is full takes no message, "
        "and no dead letter"
    )
    said = [{"name": unread.name, "place": str(unread.place), "why": unread.why}]
    simulated, listed, report = simulate(found, "orders"), table(found), examine_file(found)
    for shown in (found.explain("orders"), simulated, listed, report):
        assert str(shown).splitlines()[-1].strip() == unread.line
    assert listed.as_markdown().splitlines()[-1] == f"- {unread.line}"
    assert as_json.explanation(found.explain("orders"))["not_read"] == said
    assert as_json.simulation(simulated)["not_read"] == said
    assert as_json.everything(found)["not_read"] == said
    assert listed.as_dict()["not_read"] == report.as_dict()["not_read"] == said
    for to in ("artemis", "hornetq", "activemq", "python"):
        assert unread.line in convert(found, to).lost
    (changed,) = [each for each in diff(found, read(text.replace("DROP", "PAGE"))) if each.title == "orders"]
    assert [each.name for each in changed.changes] == ["not read"]


def test_it_is_said_of_the_destinations_that_it_is_about() -> None:
    strategy = '<slowConsumerStrategy><bean xmlns="x" class="com.example.Aborts"/></slowConsumerStrategy>'
    entry = f'<policyEntry {{}}="{{}}">{strategy}</policyEntry>'
    found = classic(policy_entries(entry.format("queue", "orders.>") + '<policyEntry queue="stock"/>'))
    assert len(found.explain("orders.new").not_read) == 1
    assert found.explain("stock").not_read == ()
    settings = {"#": {"dead_letter_address": "DLQ"}, "other": {"dead_letter_address": "DLA"}}
    text = address_settings(**settings).replace(
        "<address-settings>",
        "<diverts><divert name='away'><address>DLQ</address><forwarding-address>gone</forwarding-address>"
        "<exclusive>true</exclusive></divert></diverts><address-settings>",
    )
    diverted = read(text)
    (line,) = diverted.explain("any").not_read
    assert line.why == "what is sent to DLQ, a dead letter too, goes to gone instead, whose settings count there"
    assert [len(diverted.explain(each).not_read) for each in ("DLQ", "other")] == [1, 0]


PLUGINS = {
    '<timeStampingBrokerPlugin ttlCeiling="5"/>': None,
    '<bean xmlns="x" class="a.b.plugin.ForcePersistencyModeBrokerPlugin"/>': None,
    '<destinationPathSeparatorPlugin pathSeparator="/"/>': "destinationPathSeparatorPlugin",
    '<bean xmlns="x" id="ours" class="com.example.Removes"/>': "bean com.example.Removes",
    "<statisticsBrokerPlugin/>": None,
    '<bean xmlns="x" class="org.apache.activemq.plugin.StatisticsBrokerPlugin"/>': None,
}


@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_plugin_of_classic_decides_unless_it_is_known_not_to(plugin: str) -> None:
    found = classic(f"<plugins>{plugin}</plugins>")
    expected = PLUGINS[plugin]
    names = [each.name for each in found.not_read]
    assert (names == []) if expected is None else names[0].startswith(expected)


OF_ARTEMIS = {
    '<broker-plugins><broker-plugin class-name="com.example.P"/></broker-plugins>': "broker-plugin com.example.P",
    '<broker-plugins><broker-plugin class-name="a.b.LoggingActiveMQServerPlugin"/></broker-plugins>': None,
    '<bridges><bridge name="b"><queue-name>x</queue-name></bridge></bridges>': "bridge b",
    "<remoting-incoming-interceptors><class-name>a.B</class-name></remoting-incoming-interceptors>": "interceptor a.B",
    '<acceptors><acceptor name="a">tcp://h:1?protocols=AMQP;amqpTreatRejectAsUnmodifiedDeliveryFailed=true</acceptor>'
    "</acceptors>": "amqpTreatRejectAsUnmodifiedDeliveryFailed = true",
    '<acceptors><acceptor name="a">tcp://h:1?protocols=AMQP</acceptor></acceptors>': None,
}


@pytest.mark.parametrize("section", OF_ARTEMIS)
def test_sections_of_artemis_that_decide(section: str) -> None:
    expected = OF_ARTEMIS[section]
    assert [each.name for each in read(ARTEMIS.format(section)).not_read] == ([] if expected is None else [expected])


INTERCEPTOR = (
    "<destinationInterceptors><virtualDestinationInterceptor><virtualDestinations>{}</virtualDestinations>"
    "</virtualDestinationInterceptor></destinationInterceptors>"
)
STORE = "<persistenceAdapter>{}</persistenceAdapter>"
OF_CLASSIC = {
    INTERCEPTOR.format(
        '<compositeQueue name="x"><forwardTo><queue physicalName="y"/></forwardTo></compositeQueue>'
    ): "what is sent to x, a dead letter too, goes to queue://y instead, whose entries count",
    INTERCEPTOR.format(
        '<virtualTopic name=">" prefix="VTC.*."/>'
    ): "what is sent to topic://> goes to the queues VTC.*.>, whose entries count",
    INTERCEPTOR.format('<virtualTopic name="VirtualTopic.>"/>'): None,
    STORE.format(
        '<kahaDB directory="d" rewriteOnRedelivery="true"/>'
    ): "the store keeps the count of a redelivered message over a restart",
    STORE.format('<kahaDB directory="d"/>'): None,
}


@pytest.mark.parametrize("section", OF_CLASSIC)
def test_sections_of_classic_that_decide(section: str) -> None:
    expected = OF_CLASSIC[section]
    assert [each.why for each in classic(section).not_read] == ([] if expected is None else [expected])


def test_a_shovel_and_an_exchange_of_a_plugin_of_rabbitmq() -> None:
    shovel = {"component": "shovel", "vhost": "/", "name": "back", "value": {"src-queue": "DLQ", "dest-queue": "x"}}
    exchange = {"name": "e", "vhost": "/", "type": "x-random"}
    found = _rabbit(parameters=[shovel], exchanges=[exchange], queues=[{"name": "x", "vhost": "/"}])
    assert [each.why.partition(":")[0] for each in found.not_read] == [
        "the shovel 'back' takes the messages of DLQ elsewhere",
        "the plug-in of the type x-random routes what is sent there, a dead letter too",
    ]
    assert [each.name for each in found.explain("x").not_read] == ["exchange e"]


READ: Final[Mapping[str, Collection[str]]] = {
    "artemis address-setting": NAMES,
    "artemis queue": (),
    "hornetq address-setting": HORNETQ_NAMES,
    "activemq policyEntry": {
        *of_activemq.ENTRY,
        *("deadLetterStrategy", "pendingMessageLimitStrategy", "messageEvictionStrategy", "slowConsumerStrategy"),
    },
    "activemq plugins": {"redeliveryPlugin", "discardingDLQBrokerPlugin", *ARRIVALS},
    "qpid queue": broker_j.NAMES,
}


@pytest.mark.parametrize(
    ("broker", "names"),
    [
        ("artemis", schemas.names_of_artemis),
        ("hornetq", schemas.names_of_hornetq),
        ("activemq", schemas.names_of_activemq),
        ("qpid", schemas.names_of_qpid),
    ],
)
def test_each_name_of_the_broker_s_schema_is_read_or_said_or_about_something_else(
    broker: str, names: Callable[[Path], dict[str, set[str]]]
) -> None:
    missing = SPECS[broker].source.missing()
    if missing:
        pytest.skip(f"{broker}: {missing}")
    for kind, found in names(SPECS[broker].source.fetch()).items():
        unread = {*activemq.PLUGINS, *activemq.HARMLESS} if kind == "activemq plugins" else KINDS[kind][0]
        known = {*READ[kind], *unread, *schemas.OTHERS.get(kind, "").split()}
        assert found - known == set(), f"{kind}: look at what they do"
