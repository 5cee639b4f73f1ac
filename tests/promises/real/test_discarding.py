"""Classic's discarding plug-in where it drops everything, and says so now and then."""

from __future__ import annotations

import pytest
from tests.differential.files import text_of
from tests.differential.scenario import Scenario
from tests.promises.real.started import running

from redelivery.testing.brokers.specs import activemq

PLUGIN = '<discardingDLQBrokerPlugin dropAll="true" reportInterval="{}"/>'


@pytest.mark.promise("classic-discarding")
@pytest.mark.long_form
@pytest.mark.timeout(150)
@pytest.mark.parametrize(("interval", "reports"), [(2, 2), (0, 0)])
def test_classic_drops_everything_and_reports_every_so_many(interval: int, reports: int) -> None:
    pytest.importorskip("proton")
    from tests.differential.player import Place, play

    usual = "<statisticsBrokerPlugin/>"
    with running(
        activemq.SPEC, lambda site: text_of("classic", site.host, site.ports).replace(usual, PLUGIN.format(interval))
    ) as broker:
        place = Place(f"amqp://{broker.host}:{broker.ports['amqp']}", None)
        played = play(Scenario("", "", "q", "rejected", sends=5, patience=3.0, dead=("ActiveMQ.DLQ",)), place)
        assert [body for body, _ in played.deliveries] == ["1", "2", "3", "4", "5"]
        assert played.dead == []
        assert broker.output().count("messages were discarded") == reports
