"""The real brokers that tests can run against, a file each: its distribution, configuration and command line.

A file's docstring lists what the tests need beyond a stock broker. Another broker is a file beside these, an entry in
`SPECS`, and a fixture in `redelivery.testing.fixtures`.
"""

from __future__ import annotations

from collections.abc import Mapping

from redelivery.testing.brokers.spec import BrokerSpec
from redelivery.testing.brokers.specs import activemq, activemq6, artemis, hornetq, qpid, rabbitmq, rabbitmq4

SPECS: Mapping[str, BrokerSpec] = {
    each.SPEC.name: each.SPEC for each in (activemq, activemq6, artemis, qpid, rabbitmq, rabbitmq4, hornetq)
}
