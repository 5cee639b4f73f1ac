"""The configuration files: the same text for the real broker and for the embedded one."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from string import Template
from typing import Any, Final

from tests.differential.artemis import ADDRESSES, JMS_ADDRESSES, JMS_NO_ROUTE, MATCHES
from tests.differential.broker_j import BOUND, EXCHANGES, MADE, QUEUES

from redelivery.testing.brokers.spec import BrokerSpec, Site
from redelivery.testing.brokers.specs import activemq, artemis, hornetq, qpid

# What a file is called, and whose it is.
NAMES: Final[Mapping[str, tuple[BrokerSpec, str]]] = {
    "artemis": (artemis.SPEC, "broker.xml"),
    "classic": (activemq.SPEC, "activemq.xml"),
    "classic-discarding": (activemq.SPEC, "activemq.xml"),
    "classic-redelivery": (activemq.SPEC, "activemq.xml"),
    "classic-gone": (activemq.SPEC, "activemq.xml"),
    "classic-individual": (activemq.SPEC, "activemq.xml"),
    "hornetq": (hornetq.SPEC, "hornetq-configuration.xml"),
    "broker-j": (qpid.SPEC, "broker.json"),
    "broker-j-bound": (qpid.SPEC, "broker.json"),
}

_ARTEMIS = Template("""\
<configuration xmlns="urn:activemq">
  <core xmlns="urn:activemq:core">
    <name>artemis</name>
    <persistence-enabled>false</persistence-enabled>
    <max-redelivery-records>1</max-redelivery-records>
    <message-expiry-scan-period>100</message-expiry-scan-period>
    <security-enabled>false</security-enabled>
    <acceptors>
      <acceptor name="openwire">tcp://$host:$openwire?protocols=CORE,OPENWIRE;supportAdvisory=false</acceptor>
      <acceptor name="amqp">tcp://$host:$amqp?protocols=AMQP</acceptor>
      <acceptor name="stomp">tcp://$host:$stomp?protocols=STOMP</acceptor>
    </acceptors>
    <address-settings>
      <address-setting match="#">
        <auto-delete-queues>false</auto-delete-queues>
        <auto-delete-addresses>false</auto-delete-addresses>
      </address-setting>
      $settings
    </address-settings>
    <addresses>
      $addresses
    </addresses>
  </core>
</configuration>
""")

_CLASSIC = Template("""\
<beans xmlns="http://www.springframework.org/schema/beans" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
  xsi:schemaLocation="http://www.springframework.org/schema/beans
    http://www.springframework.org/schema/beans/spring-beans.xsd
    http://activemq.apache.org/schema/core http://activemq.apache.org/schema/core/activemq-core.xsd">
  <broker xmlns="http://activemq.apache.org/schema/core" brokerName="classic" useJmx="false" advisorySupport="false"
          schedulerSupport="true" persistent="false">
    <destinationPolicy><policyMap><policyEntries>
      $entries
    </policyEntries></policyMap></destinationPolicy>
    <plugins>$plugins</plugins>
    <transportConnectors>
      <transportConnector name="openwire" uri="tcp://$host:$openwire"/>
      <transportConnector name="amqp" uri="amqp://$host:$amqp"/>
      <transportConnector name="stomp" uri="stomp://$host:$stomp"/>
    </transportConnectors>
  </broker>
</beans>
""")

_ENTRIES = """\
<policyEntry queue="c.individual.>" expireMessagesPeriod="500">
        <deadLetterStrategy><individualDeadLetterStrategy queuePrefix="DLQ."/></deadLetterStrategy>
      </policyEntry>
      <policyEntry queue="c.volatile-kept">
        <deadLetterStrategy>
          <individualDeadLetterStrategy queuePrefix="DLQ." processNonPersistent="true"/>
        </deadLetterStrategy>
      </policyEntry>
      <policyEntry queue="c.expired-removed" expireMessagesPeriod="500">
        <deadLetterStrategy><sharedDeadLetterStrategy processExpired="false"/></deadLetterStrategy>
      </policyEntry>
      <policyEntry queue="c.expiring">
        <deadLetterStrategy>
          <individualDeadLetterStrategy queuePrefix="DLQ." expiration="3600000"/>
        </deadLetterStrategy>
      </policyEntry>
      <policyEntry topic="c.durable">
        <deadLetterStrategy>
          <individualDeadLetterStrategy topicPrefix="DLQ." topicSuffix=".end" destinationPerDurableSubscriber="true"/>
        </deadLetterStrategy>
      </policyEntry>
      <policyEntry queue=">" expireMessagesPeriod="500"/>"""
_INDIVIDUAL = """\
<policyEntry queue=">">
        <deadLetterStrategy><individualDeadLetterStrategy queuePrefix="DLQ."/></deadLetterStrategy>
      </policyEntry>
      <policyEntry queue="c.topic">
        <deadLetterStrategy>
          <individualDeadLetterStrategy queuePrefix="DLQ." useQueueForQueueMessages="false"/>
        </deadLetterStrategy>
      </policyEntry>"""
_LINE = "\n"
_DISCARDING = '<discardingDLQBrokerPlugin dropAll="false" dropOnly="c\\.drop\\.[0-9]+" reportInterval="0"/>'
_REDELIVERY = """\
<redeliveryPlugin fallbackToDeadLetter="{0}" sendToDlqIfMaxRetriesExceeded="{0}">
  <redeliveryPolicyMap><redeliveryPolicyMap><redeliveryPolicyEntries>
    <redeliveryPolicy queue="c.special" maximumRedeliveries="3" initialRedeliveryDelay="1000" redeliveryDelay="1000"/>
    <redeliveryPolicy queue="c.volatile.special" maximumRedeliveries="1" initialRedeliveryDelay="1000"
                      redeliveryDelay="1000"/>
    <redeliveryPolicy queue="c.endless" maximumRedeliveries="-1" initialRedeliveryDelay="1000" redeliveryDelay="1000"/>
    <redeliveryPolicy queue="c.exponential" maximumRedeliveries="3" initialRedeliveryDelay="1000" redeliveryDelay="1000"
                      useExponentialBackOff="true" backOffMultiplier="2" maximumRedeliveryDelay="3000"/>
    <redeliveryPolicy queue="c.expired.special" initialRedeliveryDelay="5000" redeliveryDelay="5000"/>
  </redeliveryPolicyEntries></redeliveryPolicyMap></redeliveryPolicyMap>
</redeliveryPlugin>"""
_PLUGINS: Final = {
    "classic-discarding": _DISCARDING,
    "classic-redelivery": _REDELIVERY.format("true"),
    "classic-gone": _REDELIVERY.format("false"),
}


def text_of(name: str, host: str, ports: Mapping[str, int]) -> str:
    """A file's text, for a broker that listens there."""
    if name == "artemis":
        return _artemis(host, ports)
    if name == "hornetq":
        return _hornetq()
    if name.startswith("broker-j"):
        return _broker_j(name, host, ports)
    plugins = _PLUGINS.get(name, "<statisticsBrokerPlugin/>")  # it must not be empty
    entries = _INDIVIDUAL if name == "classic-individual" else _ENTRIES
    return _CLASSIC.substitute(ports, host=host, plugins=plugins, entries=entries)


def spec_of(name: str) -> BrokerSpec:
    """The real broker with that file."""
    return spec_with(*NAMES[name], lambda site: text_of(name, site.host, site.ports))


def spec_with(spec: BrokerSpec, file: str, text: Callable[[Site], str]) -> BrokerSpec:
    """The real broker with a file of that name and text in place of its own."""

    def configure(site: Site) -> None:
        spec.configure(site)
        site.write(file, text(site))

    def command(site: Site) -> Sequence[str]:
        usual = spec.command(site)
        if spec.name != "hornetq":
            return usual
        return [*usual[:-1], f"{usual[-1]} {shlex.quote(str(site.folder / file))}"]  # a line of the shell

    return replace(spec, configure=configure, command=command)


def _setting(match: str, values: Mapping[str, object]) -> str:
    inside = "".join(f"<{key}>{value}</{key}>" for key, value in values.items() if value is not None)
    return f'<address-setting match="{match}">{inside}</address-setting>'


def _hornetq() -> str:
    settings = [_setting("jms.topic.h.no-route", JMS_NO_ROUTE)]
    queues = []
    for name, given in JMS_ADDRESSES.items():
        settings.append(_setting(f"jms.queue.h.{name}", given))
        for place in (f"jms.queue.h.{name}", f"jms.queue.DLA.h.{name}", f"jms.queue.EXP.h.{name}"):
            queues.append(f'<queue name="{place}"><address>{place}</address></queue>')
    queues.append('<queue name="jms.queue.DLA.h.no-route"><address>jms.queue.DLA.h.no-route</address></queue>')
    return (
        '<configuration xmlns="urn:hornetq">\n<message-expiry-scan-period>100</message-expiry-scan-period>\n'
        f"<queues>\n{_LINE.join(queues)}\n</queues>\n<address-settings>\n{_LINE.join(settings)}\n</address-settings>\n"
        "</configuration>\n"
    )


def _artemis(host: str, ports: Mapping[str, int]) -> str:
    settings, addresses = [], []
    for name, given in ADDRESSES.items():
        queue = f"a.{name}"
        settings.append(_setting(queue, {"dead-letter-address": f"DLA.{queue}", **given}))
        for place in (queue, f"DLA.{queue}", f"EXP.{queue}"):
            addresses.append(f'<address name="{place}"><anycast><queue name="{place}"/></anycast></address>')
    for match, fields in MATCHES.items():
        settings.append(_setting(match, fields))
    for place in ("a.merged.x", "a.star.x", "DLA.a.merged.x", "DLA.a.star.x", "DLC.self"):
        addresses.append(f'<address name="{place}"><anycast><queue name="{place}"/></anycast></address>')
    addresses.append('<address name="NOBODY"><anycast/></address>')
    for topic in (each for each in MATCHES if each.startswith("a.no-route")):
        addresses.append(f'<address name="{topic}"><multicast/></address>')
        place = f"DLA.{topic}"
        addresses.append(f'<address name="{place}"><anycast><queue name="{place}"/></anycast></address>')
    return _ARTEMIS.substitute(ports, host=host, settings="\n".join(settings), addresses="\n".join(addresses))


def _broker_j(file: str, host: str, ports: Mapping[str, int]) -> str:
    queues: list[dict[str, Any]] = []
    context = {"queue.maximumDeliveryAttempts": "5", "virtualhost.housekeepingCheckPeriod": "200"}
    if file == "broker-j-bound":
        context["queue.defaultAlternateBinding"] = '{"destination": "${this:name}_DLQ", "attributes": {}}'
    for name, given in (BOUND if file == "broker-j-bound" else QUEUES).items():
        values = dict(given)
        queue: dict[str, Any] = {"name": f"j.{name}", "type": "standard"}
        if "alternate" in values:
            queue["alternateBinding"] = {"destination": values.pop("alternate")}
        dead, after = values.pop("dead", None), values.pop("after", None)
        if dead is not None:
            queues.append({"name": f"j.{name}_DLQ", "type": "standard", "maximumDeliveryAttempts": 0})
        if dead:
            queue["alternateBinding"] = {"destination": f"j.{name}_DLQ"}
        queues.append({**queue, **values})
        if after is not None:
            queues.append({"name": after, "type": "standard", "maximumDeliveryAttempts": 0})
    host_text: dict[str, Any] = {"type": "Memory", "context": context, "queues": queues}
    if file == "broker-j":
        host_text["exchanges"] = [
            {
                "name": name,
                "type": kind,
                "durableBindings": [{"destination": queue, "bindingKey": key} for queue, key in bound.items()],
            }
            for name, (kind, bound) in EXCHANGES.items()
        ]
        host_text["nodeAutoCreationPolicies"] = [
            {"pattern": rf"{name}\..*", "nodeType": "queue", "attributes": {}, made: "true"}
            for name, made in MADE.items()
        ]
    users = [{"name": "guest", "type": "managed", "password": "guest"}]
    broker = {
        "name": "qpid",
        "modelVersion": "9.0",
        "authenticationproviders": [
            {"name": "users", "type": "Plain", "secureOnlyMechanisms": "[]", "users": users},
            {"name": "anyone", "type": "Anonymous"},
        ],
        "ports": [
            {
                "name": "AMQP",
                "type": "AMQP",
                "port": ports["amqp"],
                "bindingAddress": host,
                "authenticationProvider": "anyone",
                "protocols": ["AMQP_1_0"],
                "virtualhostaliases": [
                    {"name": "default", "type": "defaultAlias"},
                    {"name": "any", "type": "patternMatchingAlias", "pattern": ".*", "virtualHostNode": "default"},
                ],
            }
        ],
        "virtualhostnodes": [
            {
                "name": "default",
                "type": "Memory",
                "defaultVirtualHostNode": "true",
                "virtualHostInitialConfiguration": json.dumps(host_text),
            }
        ],
    }
    return json.dumps(broker, indent=2)
