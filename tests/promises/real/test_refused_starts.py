"""Files with which the real brokers do not start, as the embedded one; and one with which Artemis does."""

from __future__ import annotations

import pytest
from tests.differential.files import text_of
from tests.promises.real.started import ARTEMIS, artemis_with, refusal, running, setting

from redelivery.testing.brokers.specs import activemq

promise = pytest.mark.promise
pytestmark = [pytest.mark.long_form, pytest.mark.timeout(150)]


@promise("artemis-factor-range")
@promise("seen-artemis-refused")
def test_artemis_with_a_factor_out_of_its_range() -> None:
    said = refusal(ARTEMIS, artemis_with(setting("x", redelivery_collision_avoidance_factor=1.5)))
    assert "AMQ229228: redelivery-collision-avoidance-factor must be less than or equal to 1" in said


def test_artemis_starts_with_a_multiplier_that_is_refused_here() -> None:
    with running(ARTEMIS, artemis_with(setting("x", redelivery_delay_multiplier="-2.0"))) as broker:
        assert "AMQ221007: Server is now active" in broker.output()


@promise("classic-scheduler")
@promise("seen-classic-refused")
@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ('schedulerSupport="true"', 'schedulerSupport="false"', "RedeliveryPlugin requires schedulerSupport=true"),
        ('"1000"', '"999"', "RedeliveryPolicy"),
    ],
)
def test_classic_with_its_redelivery_plug_in(before: str, after: str, says: str) -> None:
    said = refusal(
        activemq.SPEC, lambda site: text_of("classic-redelivery", site.host, site.ports).replace(before, after)
    )
    assert "at org.apache.activemq.broker.util.RedeliveryPlugin." in said
    assert says in said
