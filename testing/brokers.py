"""The real brokers that tests can run against. Another one is a file beside these, and a fixture in `fixtures`."""

from __future__ import annotations

from collections.abc import Mapping

from redelivery.testing import activemq, artemis, hornetq, qpid, rabbitmq
from redelivery.testing.spec import BrokerSpec

SPECS: Mapping[str, BrokerSpec] = {each.SPEC.name: each.SPEC for each in (activemq, artemis, qpid, rabbitmq, hornetq)}
