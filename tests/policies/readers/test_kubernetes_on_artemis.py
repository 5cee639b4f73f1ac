"""A resource's settings on Artemis 2.44 itself: as the operator hands them over, upon the settings of its image."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from tests.policies.readers.documents import read
from tests.promises.real.started import ARTEMIS as BROKER
from tests.promises.real.started import artemis_with, running, setting

import redelivery
from redelivery.operate.doctor.management import artemis_rules
from redelivery.policies.brokers.artemis.rules import ArtemisRules

RESOURCE = """\
apiVersion: broker.amq.io/v1beta1
kind: ActiveMQArtemis
metadata: {name: shop}
spec:
  addressSettings:
    addressSetting:
    - {match: 'orders.#', redeliveryDelay: 0x1F4, maxRedeliveryDelay: 1e4, maxDeliveryAttempts: 010}
    - {match: 'orders.eu.*', maxDeliveryAttempts: -1, expiryAddress: late, expiryDelay: 60000}
    - {match: orders.us, deadLetterAddress: D, redeliveryDelay: 700, minExpiryDelay: 10, maxExpiryDelay: 90000}
    - match: created.#
      deadLetterAddress: DLA
      autoCreateDeadLetterResources: yes
      deadLetterQueuePrefix: ''
      deadLetterQueueSuffix: .dead
      autoCreateExpiryResources: on
      expiryQueuePrefix: X.
      expiryQueueSuffix: .late
    - {match: noroute, sendToDlaOnNoRoute: true}
  brokerProperties:
  - addressSettings."orders.us".redeliveryMultiplier=2.5
  - addressSettings."orders.us".redeliveryCollisionAvoidanceFactor=0.25
  - addressSettings."kept.#".noExpiry=true
  - broker-0.addressSettings."#".maxDeliveryAttempts=6
"""
OWN = re.compile(r'<address-setting match="#">\s*<auto-delete.*?</address-setting>', re.DOTALL)  # of the tests' broker
ADDRESSES = {"dead_letter_address", "expiry_address"}
NAMES = ("orders", "orders.eu", "orders.eu.a", "orders.us", "created.a", "noroute", "kept.x", "other")
IMAGE = "".join(
    setting(match, dead_letter_address="DLQ", expiry_address="ExpiryQueue", redelivery_delay=0)
    for match in ("activemq.management.#", "#")
)


def handed_over() -> str:
    """The properties that the operator would write, by PyYAML's own loader and not by ours."""
    spec = yaml.safe_load(RESOURCE.replace("1e4", "10000"))["spec"]
    lines = []
    for entry in spec["addressSettings"]["addressSetting"]:
        match = entry.pop("match")
        for name, value in entry.items():
            bean = name.replace("DlaOn", "DLAOn")
            lines.append(f'addressSettings."{match}".{bean}={str(value).lower() if isinstance(value, bool) else value}')
    return "\n".join([*lines, *(each.removeprefix("broker-0.") for each in spec["brokerProperties"])])


@pytest.mark.long_form
@pytest.mark.timeout(150)
def test_artemis_itself_has_each_setting_that_is_read_of_a_resource(tmp_path: Path) -> None:
    file = tmp_path / "broker.properties"
    file.write_text(handed_over(), encoding="utf-8")
    rules = read(RESOURCE, "cr.yaml").rules
    assert isinstance(rules, ArtemisRules)
    spec = replace(BROKER, command=lambda site: [*BROKER.command(site), "--properties", str(file)])
    with (
        running(spec, lambda site: OWN.sub("", artemis_with(IMAGE, "DLQ")(site), count=1)) as broker,
        redelivery.connect(f"amqp://{broker.host}:{broker.ports['amqp']}") as connection,
    ):
        reported = artemis_rules(connection, NAMES)
    for name in NAMES:
        itself, ours = reported.settings_for(name), rules.settings_for(name)
        for field in (itself.fields_set | ADDRESSES) - {"max_redelivery_delay"}:
            assert getattr(itself, field) == getattr(ours, field), (name, field)
        assert itself.longest_delay == ours.longest_delay, name
