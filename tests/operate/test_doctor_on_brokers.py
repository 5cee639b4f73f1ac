"""The doctor on brokers that report their queues and rules over AMQP."""

from __future__ import annotations

import json
from uuid import uuid4

import pytest
from tests.differential.files import text_of
from tests.policies.readers.documents import address_settings, read
from tests.promises.real.started import artemis_with, running

import redelivery
from redelivery.model.destinations import Queue
from redelivery.operate.doctor import broker_j, inspect, statistics
from redelivery.operate.doctor.doctor import examine, own_rules
from redelivery.operate.doctor.findings import Report
from redelivery.operate.letters.overview import overview
from redelivery.testing.brokers.real import RealBroker
from redelivery.testing.brokers.spec import Site
from redelivery.testing.brokers.specs import activemq, artemis, qpid
from redelivery.transports.wire import clock

pytest.importorskip("proton")


def said(report: Report, check: str) -> list[str]:
    return [each.what for each in report.findings if each.check == check]


def test_artemis_reports_its_queues_and_address_settings(redelivery_artemis: RealBroker) -> None:
    url, queue = redelivery_artemis.amqp_url, f"doctor.{uuid4().hex}"
    with redelivery.connect(url) as connection, connection.session() as session:
        session.producer(queue).send("waiting")
        with_backlog = examine(url, queues=[queue], watch=0)
        with session.consumer(queue) as consumer:
            assert consumer.receive(timeout=10) is not None
            emptied = examine(url, queues=[queue], watch=0)
    waiting = f"1 message is in {queue}, which has no consumer"
    assert waiting in said(with_backlog, "backlog")  # beside what other tests have left there
    assert waiting not in said(emptied, "backlog")
    assert any("of 10)" in each for each in said(with_backlog, "prefetch"))  # max-delivery-attempts, as it says


def test_a_dead_letter_address_without_a_queue_is_found_on_artemis(redelivery_artemis: RealBroker) -> None:
    address = f"nowhere.{uuid4().hex}"
    file = read(address_settings(**{"#": {"dead_letter_address": address}}))
    report = examine(redelivery_artemis.amqp_url, file, watch=0)
    assert f"the broker has no queue on the dead-letter address {address}" in said(report, "unbound")
    assert report.failed
    assert said(examine(redelivery_artemis.amqp_url, watch=0), "unbound") == []  # its own DLQ has one


def test_artemis_reports_the_settings_of_the_addresses_that_it_lists(redelivery_artemis: RealBroker) -> None:
    url, queue = redelivery_artemis.amqp_url, f"doctor.{uuid4().hex}"
    unchecked: list[str] = []
    with redelivery.connect(url) as connection:
        with connection.session() as session:
            session.producer(queue).send("here")
        rules = own_rules(connection, (), unchecked)
    assert rules is not None
    assert queue in rules.rules.names() or "more addresses" in str(unchecked)  # of other tests: 200 at most are asked
    assert "DLQ" not in rules.rules.names()  # where dead letters go
    assert len(rules.rules.names()) <= 201


@pytest.mark.long_form
@pytest.mark.timeout(150)
def test_artemis_without_a_dead_letter_address_says_so_itself() -> None:
    """Without a file: by its management, of the queues that it has and of all others."""
    limit = "<max-delivery-attempts>4</max-delivery-attempts>"
    settings = f'<address-setting match="doctor.kept"><dead-letter-address>DLQ</dead-letter-address>{limit}'
    settings += f'</address-setting><address-setting match="doctor.lost">{limit}</address-setting>'
    with running(artemis.SPEC, artemis_with(settings, "DLQ", "doctor.kept", "doctor.lost")) as broker:
        report = examine(f"amqp://{broker.host}:{broker.ports['amqp']}", watch=0)
    removed = said(report, "removed")
    assert [each for each in removed if "doctor." in each] == [
        "queue://doctor.lost: a message is removed after 4 deliveries (no dead-letter-address is set)"
    ]
    assert any(
        each.endswith("more: a message is removed after 10 deliveries (no dead-letter-address is set)")
        for each in removed
    )
    assert {each.level for each in report.findings if each.check == "removed"} == {"error"}
    assert report.failed
    assert not [each for each in report.unchecked if "rules" in each]


def test_classic_without_its_statistics_says_what_it_needs(redelivery_activemq: RealBroker) -> None:
    unchecked = examine(redelivery_activemq.amqp_url, watch=0).unchecked
    reason = "ActiveMQ Classic reports them over amqp://, where its activemq.xml has statisticsBrokerPlugin"
    reason += " and the user may write to ActiveMQ.Statistics.>, or by its console: pass --management http://user:password@host:8161"
    assert f"whether queues have consumers: {reason}" in unchecked


def test_classic_without_its_statistics_is_not_waited_for(
    redelivery_activemq: RealBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody answers there: what was sent behind the question says so, and not the end of a time."""
    monkeypatch.setattr(statistics, "_SECONDS", 600.0)
    with redelivery.connect(redelivery_activemq.amqp_url) as connection:
        assert not statistics.has_statistics(connection)


NO_QUESTIONS = """
<simpleAuthenticationPlugin><users>
  <authenticationUser username="looks" password="looks" groups="looks"/>
  <authenticationUser username="all" password="all" groups="all"/>
</users></simpleAuthenticationPlugin>
<authorizationPlugin><map><authorizationMap><authorizationEntries>
  <authorizationEntry queue=">" read="looks,all" write="all" admin="looks,all"/>
  <authorizationEntry topic=">" read="looks,all" write="all" admin="all"/>
  <authorizationEntry topic="ActiveMQ.Advisory.>" read="looks,all" write="looks,all" admin="looks,all"/>
  {}
</authorizationEntries></authorizationMap></map></authorizationPlugin>"""
ONLY_THE_BROKER = '<authorizationEntry topic="ActiveMQ.Statistics.>" read="looks" write="looks" admin="looks"/>'


@pytest.mark.long_form
@pytest.mark.timeout(150)
@pytest.mark.parametrize("more", ["", ONLY_THE_BROKER], ids=["nothing", "the broker"])
def test_classics_queues_are_browsed_where_the_user_may_not_ask_its_statistics(more: str) -> None:
    plugin = "<statisticsBrokerPlugin/>"
    with running(
        activemq.SPEC,
        lambda site: text_of("classic", site.host, site.ports).replace(plugin, plugin + NO_QUESTIONS.format(more)),
    ) as broker:
        address = f"127.0.0.1:{broker.ports['amqp']}"
        with redelivery.connect(f"amqp://all:all@{address}") as connection, connection.session() as session:
            session.producer("orders.DLQ").send("dead")
        with redelivery.connect(f"amqp://looks:looks@{address}") as connection:
            found = overview(connection, queues=[Queue("orders.DLQ")])
    assert [(each.name, each.letters) for each in found.queues if each.letters] == [("orders.DLQ", 1)]
    assert [each for each in found.unchecked if "write to ActiveMQ.Statistics.>" in each]


@pytest.mark.long_form
@pytest.mark.timeout(150)
def test_classic_reports_its_consumers_by_its_statistics_plug_in() -> None:
    with running(activemq.SPEC, lambda site: text_of("classic", site.host, site.ports)) as broker:
        url = f"amqp://{broker.host}:{broker.ports['amqp']}"
        with redelivery.connect(url) as connection, connection.session() as session:
            session.producer("orders").send("waiting")
            alone = examine(url, queues=["orders", *(f"not.there.{number}" for number in range(190))], watch=0)
            with session.consumer("orders"):
                consumed = examine(url, queues=["orders"], watch=0)
    assert said(alone, "backlog") == ["1 message is in orders, which has no consumer"]
    assert said(consumed, "backlog") == []
    assert [each.partition(":")[0] for each in alone.unchecked if "queue" in each] == ["queues that nobody named"]


def test_rabbitmq_says_what_can_be_seen_without_its_definitions(redelivery_rabbitmq: RealBroker) -> None:
    report = examine(redelivery_rabbitmq.amqp_url, watch=0)
    (limit,) = said(report, "delivery-limit")
    assert "a quorum queue without a delivery-limit has none" in limit
    assert any("rabbitmqctl export_definitions" in each for each in report.unchecked)
    over_stomp = examine(redelivery_rabbitmq.stomp_url, watch=0).unchecked
    assert "the broker's clock: RabbitMQ hands on the time of the sender, and does not say its own" in over_stomp
    assert any("rabbitmqctl list_queues" in each for each in report.unchecked)
    quorum = '{"queues": [{"name": "q", "arguments": {"x-queue-type": "quorum"}}], "policies": []}'
    with_file = examine(redelivery_rabbitmq.amqp_url, read(quorum), watch=0)
    assert said(with_file, "no-limit") == ["queue://q: a message is redelivered without a limit"]  # as of this version


def test_hornetq_says_what_cannot_be_seen(redelivery_hornetq: RealBroker) -> None:
    report = examine(redelivery_hornetq.stomp_url, watch=0)
    assert report.broker.startswith("HornetQ")
    assert [each.partition(":")[0] for each in report.unchecked] == [
        "the broker's rules, which it does not report here",
        "the broker's clock",
        "the depths of queues",
    ]
    assert "HornetQ reports its queues over JMX" in report.unchecked[2]


def test_broker_j_reports_the_depth_of_a_queue_that_is_named(redelivery_qpid: RealBroker) -> None:
    url, queue = redelivery_qpid.amqp_url, f"doctor.{uuid4().hex}"
    with redelivery.connect(url) as connection, connection.session() as session:
        session.producer(queue).send("waiting", persistent=False)
        report = examine(url, queues=[queue], watch=0)
        with session.consumer(queue) as consumer:
            assert consumer.receive(timeout=10) is not None
    assert f"1 message is in {queue}, which has no consumer" in said(report, "backlog")  # others are other tests'


def test_broker_j_reports_the_queues_that_nobody_names_and_their_rules(redelivery_qpid: RealBroker) -> None:
    url, queue = redelivery_qpid.amqp_url, f"doctor.{uuid4().hex}"
    unchecked: list[str] = []
    with redelivery.connect(url) as connection, connection.session() as session:
        session.producer(queue).send("waiting", persistent=False)
        temporary = session.temporary_queue()
        rules = own_rules(connection, (), unchecked)
        states = inspect.Inspector(connection).states([])
        with session.consumer(queue) as consumer:
            assert consumer.receive(timeout=10) is not None
    assert rules is not None
    many = "more" in str((unchecked, states.unchecked))  # of other tests: 200 at most are asked
    assert queue in rules.rules.names() or many
    assert many or (states.queues[queue].messages, states.queues[queue].consumers) == (1, 0)
    assert temporary.name not in rules.rules.names()


@pytest.mark.parametrize(("number", "listed"), [(1, 1), (100_000, 0)])
def test_broker_j_lists_no_queue_to_whoever_asks_for_more_than_there_are(
    redelivery_qpid: RealBroker, number: int, listed: int
) -> None:
    with redelivery.connect(redelivery_qpid.amqp_url) as connection, connection.session() as session:
        session.producer(f"doctor.{uuid4().hex}").send("x", persistent=False)
        question = {"operation": "QUERY", "entityType": "org.apache.qpid.Queue", "count": number}
        answer = broker_j._asked(connection, {**broker_j._SELF, **question})
        assert len(broker_j._nested(answer, "QUERY")["results"]) == listed


def test_broker_j_may_refuse_to_list_its_queues(redelivery_qpid: RealBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    url, queue = redelivery_qpid.amqp_url, f"doctor.{uuid4().hex}"
    with redelivery.connect(url) as connection, connection.session() as session:
        session.producer(queue).send("waiting", persistent=False)
    monkeypatch.setattr(broker_j, "_SELF", {"type": "nonsense", "identity": "self"})  # as if it had no such thing
    report = examine(url, queues=[queue], watch=0)
    refused = "the broker does not do QUERY: Unknown type nonsense"
    assert report.unchecked == (f"the broker's rules: {refused}", f"queues that nobody named: {refused}")
    assert f"1 message is in {queue}, which has no consumer" in said(report, "backlog")


@pytest.mark.long_form
@pytest.mark.timeout(150)
@pytest.mark.parametrize("default", [None, "j.rest_DLQ"])
def test_broker_j_reports_its_rules_at_all_levels(default: str | None) -> None:
    """Of the queue, the virtual host and the broker: maximum, alternate binding, and what counts for all others."""

    def text(site: Site) -> str:
        document = json.loads(text_of("broker-j", site.host, site.ports))
        if default is not None:
            document["context"] = {"queue.defaultAlternateBinding": json.dumps({"destination": default})}
        node = document["virtualhostnodes"][0]
        host = json.loads(node["virtualHostInitialConfiguration"])
        host["queues"].insert(0, {"name": "j.rest_DLQ", "type": "standard", "maximumDeliveryAttempts": 0})
        host["queues"].append({"name": r"a/b\c", "type": "standard", "maximumDeliveryAttempts": 4})  # as in a path
        created = {"createdOnPublish": "true", "createdOnConsume": "true", "nodeType": "queue"}
        host["nodeAutoCreationPolicies"] = [
            {"pattern": "web.*", **created, "attributes": {"maximumDeliveryAttempts": 2}}
        ]
        node["virtualHostInitialConfiguration"] = json.dumps(host)
        return json.dumps(document)

    with running(qpid.SPEC, text) as broker:
        url = f"amqp://{broker.host}:{broker.ports['amqp']}"
        report = examine(url, watch=0)
        with redelivery.connect(url) as connection:
            rules = own_rules(connection, (Queue("j.three_DLQ"), Queue("j.rest_DLQ")), [])
    assert rules is not None

    def fate(queue: str) -> tuple[int | None, str | None]:
        explained = rules.explain(queue)
        return explained.maximum, explained.dead_letter

    assert fate("j.three") == (3, "j.three_DLQ")
    assert fate("j.discarded") == (3, default)
    assert fate("j.of-host") == (5, "j.of-host_DLQ")  # the virtual host's maximum
    assert fate("j.off") == (None, "j.off_DLQ")  # 0 wins over it
    assert fate(r"a/b\c") == (4, default)
    assert fate("website") == (2, default)
    assert fate("any.other") == (5, default)
    names = rules.rules.names()
    assert "j.three_DLQ" in names, "it was asked for"
    assert "j.off_DLQ" not in names, "dead letters go there"
    removed = [each for each in said(report, "removed") if "j.discarded" in each]
    assert bool(removed) is (default is None)
    assert report.failed is (default is None)
    assert any("j.off" in each for each in said(report, "no-limit"))
    assert not [each for each in report.unchecked if "rules" in each or "queues" in each]


def test_artemis_and_broker_j_report_their_time_over_amqp(
    redelivery_artemis: RealBroker, redelivery_qpid: RealBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    for broker in (redelivery_artemis, redelivery_qpid):
        with redelivery.connect(broker.amqp_url) as connection:
            assert inspect.clock_skew(connection) == pytest.approx(0, abs=0.5)
            with monkeypatch.context() as patch:
                patch.setattr(inspect, "epoch_ms", lambda: clock.epoch_ms() - 60_000)
                assert inspect.clock_skew(connection) == pytest.approx(60, abs=3)


def test_classic_does_over_stomp_and_says_so_over_amqp(redelivery_activemq: RealBroker) -> None:
    over_stomp = examine(redelivery_activemq.stomp_url, watch=0)
    assert not [each for each in over_stomp.unchecked if "clock" in each]
    (unchecked,) = (each for each in examine(redelivery_activemq.amqp_url, watch=0).unchecked if "clock" in each)
    assert unchecked.endswith("use stomp://")
