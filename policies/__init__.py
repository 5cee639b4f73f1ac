"""Pure decisions about redelivery and reconnecting: immutable values without clock or sleeping (floor 1).

`redelivery` says when a message that failed is redelivered and when never again, `dead_letters` where it goes then, and
`dead_letter_headers` what is written on it. `destinations/` holds such values by destination, and `prefetch` how much
is delivered ahead. `reconnect` says when a lost connection is tried again. `connection_url` and `activemq/` read
ActiveMQ's spelling, and `checks` says of a bad value what fits. `brokers/` has a folder for each broker whose
configuration is read and written, of the trees that `files/` makes.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from redelivery.policies.brokers.policies import BrokerPolicies

__all__ = ["read", "write"]


def read(
    path: str | PathLike[str],
    *,
    format: str | None = None,
    properties: Mapping[str, str] | None = None,
    strict: bool = True,
) -> BrokerPolicies:
    """Read the redelivery and dead-letter rules of a broker from its own configuration file.

    Args:
        path: the file: ActiveMQ's ``activemq.xml``, Artemis' ``broker.xml`` or ``broker.properties``, or both as
            ``broker.xml,broker.properties``, ``hornetq-configuration.xml``, ``standalone.xml`` or ``domain.xml`` of
            WildFly and JBoss EAP, Qpid's ``config.xml`` or ``virtualhosts.xml``, Broker-J's JSON, RabbitMQ's
            definitions; resources of Artemis' operator for Kubernetes and values of Helm charts (YAML: ``pip install
            'redelivery[yaml]'``); a client's connection factories as beans of Spring or blueprint, or as properties
            of Spring Boot; or a URL of ActiveMQ's client, like
            ``failover:(tcp://host:61616)?jms.redeliveryPolicy.maximumRedeliveries=3``.
            ``brokers.yaml#name`` is one of several brokers, connection factories or profiles of a file.
        format: what it is: ``activemq``, ``artemis``, ``artemis_properties``, ``hornetq``, ``qpid``, ``broker_j``,
            ``kubernetes``, ``helm``, ``rabbitmq``, ``spring``, ``spring_boot``, ``uri``, ``wildfly``; None: by its
            content.
        properties: values of the placeholders (``${name}``) that may occur in it; nothing else is looked up.
        strict: raise an error for what was not understood; False leaves it out, and ``problems`` has it.

    Raises:
        ConfigError: it cannot be read, has a DTD, is not what ``format`` says, or (with ``strict``) says things
            about redelivery or dead letters that were not understood; the text has file, line and column of each.
    """
    from redelivery.model.errors import ConfigError
    from redelivery.policies.brokers.files import read_file  # defusedxml and the readers are loaded when needed

    for name, value in (properties or {}).items():
        if not isinstance(value, str):
            raise ConfigError(f"properties: {name!r} is {value!r}: use a str")
    return read_file(path, format=format, properties=properties or {}, strict=strict)


def write(policies: BrokerPolicies) -> str:
    """Write ``policies`` in their broker's own format: a URL, or a file, to which what else it needs must be added.

    Raises:
        ConfigError: the format cannot hold a value; only of rules that were not read from it.
    """
    from redelivery.policies.brokers.formats import FORMATS

    return FORMATS[policies.format].write(policies.rules)
