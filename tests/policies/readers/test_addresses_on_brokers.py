"""Raw addresses, asked for by ``address:``, beside what the real brokers do with them."""

from __future__ import annotations

import pytest
from tests.broker.raw_stomp import Raw
from tests.policies.readers.documents import read
from tests.promises.real.started import ARTEMIS, HORNETQ, hornetq_with, running, setting, with_acceptors

import redelivery
from redelivery.operate.doctor.management import artemis_rules
from redelivery.policies.brokers.artemis.rules import ArtemisRules

pytestmark = [pytest.mark.long_form, pytest.mark.timeout(150)]

MATCHES = (
    *("#", "abc#", "abc.#", "abc.*", "abc.*.x", "*.x", "*", "abc.def", "abc.d#", "jms.queue.#", "x.*.#", "x.*.y.#"),
    *("news.europe.#", "news.*.sport", "news.#", "q.*", "q.a", "news.*.*", "NEWS.#", "é.#", "a.*.c", "a.b.*"),
)
NAMES = (
    *("any", "a.deep.name", "abc", "abcd", "abcd.x", "abc.def", "abc.deg", "abc.x", "abc.y.x", "abc.def.x", "abc.d.e"),
    *("b.x", "y.x", "single", "jms.queue.orders", "jms.queue", "jms.queue.abc.def", "jms.topic.x", "x", "x.a", "x.a.b"),
    *(
        "x.a.y",
        "x.a.y.z",
        "news",
        "news.europe",
        "news.europe.sport",
        "news.asia.sport",
        "news.asia",
        "news.europe.a.b",
    ),
    *("q.a", "q.b", "q.a.b", "NEWS.a", "é.b", "a.b.c", "a.x.c", "/queue/x"),
)


def test_37_addresses_under_22_patterns_have_the_settings_that_artemis_reports() -> None:
    """With a delay by even entries and a number of attempts by odd ones, so that each field shows where it is from."""
    pytest.importorskip("proton")
    settings = []
    for number, match in enumerate(MATCHES):
        delay = {"redelivery_delay": 1000 + number, "max_redelivery_delay": 100_000 + number}
        attempts = {"max_delivery_attempts": 100 + number, "expiry_delay": 5000 + number}
        both = {**delay, **attempts}
        settings.append(setting(match, **(both if not number else delay if number % 2 == 0 else attempts)))
    text = (
        '<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core"><address-settings>'
        f"{''.join(settings)}</address-settings></core></configuration>"
    )
    found = read(text, "broker.xml")
    assert isinstance(found.rules, ArtemisRules)
    with (
        running(ARTEMIS, lambda site: with_acceptors(text, site)) as broker,
        redelivery.connect(f"amqp://{broker.host}:{broker.ports['amqp']}") as connection,
    ):
        reported = {each.match: each.settings for each in artemis_rules(connection, NAMES).entries}
    assert (len(MATCHES), len(NAMES), len(reported)) == (22, 37, 37)
    for name in NAMES:
        said = {each.name: each.value for each in found.explain(f"address:{name}").settings}
        assert {
            "redelivery-delay": said["redelivery-delay"],
            "max-redelivery-delay": said["max-redelivery-delay"],
            "max-delivery-attempts": said["max-delivery-attempts"],
        } == {
            "redelivery-delay": str(round(reported[name].redelivery_delay * 1000)),
            "max-redelivery-delay": str(round(reported[name].longest_delay * 1000)),
            "max-delivery-attempts": str(reported[name].max_delivery_attempts),
        }, name


def test_an_address_of_hornetq_that_is_no_queue_of_jms_is_asked_for() -> None:
    settings = setting("a1", max_delivery_attempts=2, dead_letter_address="gone")
    settings += setting("jms.queue.a1", max_delivery_attempts=5, dead_letter_address="gone")
    text = hornetq_with(settings, "a1", "gone")
    with running(HORNETQ, text) as broker:
        url = f"stomp://{broker.host}:{broker.ports['stomp']}"
        found = read((broker.folder / "hornetq-configuration.xml").read_text(encoding="utf-8"), "hornetq.xml")
        rules = found.explain("address:a1")
        assert (rules.maximum, rules.dead_letter) == (2, "gone")
        assert found.explain("a1").maximum == 5
        with Raw(url) as sender:
            sender.ok("SEND", b"fails", destination="a1")
        for _ in range(2):
            with Raw(url) as failing:
                failing.subscribe("a1", "client")
                assert failing.next("MESSAGE").body == b"fails"
        with Raw(url) as reader:
            reader.subscribe("gone", "auto")
            assert reader.next("MESSAGE").body == b"fails"
