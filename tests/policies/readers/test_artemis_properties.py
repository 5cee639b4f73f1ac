"""Artemis' ``broker.properties``, alone and upon ``broker.xml``: what Artemis 2.44 applies, and what it ignores."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.policies.readers.documents import ARTEMIS, address_settings, read, written
from tests.promises.real.started import ARTEMIS as BROKER
from tests.promises.real.started import artemis_with, running, setting
from tests.run.commands import CliRunner

import redelivery
from redelivery.broker import EmbeddedBroker
from redelivery.cli.app import app
from redelivery.operate.doctor.management import artemis_queues, artemis_rules
from redelivery.operate.simulate import simulate
from redelivery.policies.brokers.artemis.bound import BoundQueue
from redelivery.policies.brokers.artemis.rules import ArtemisRules
from redelivery.policies.brokers.formats import read_content
from redelivery.policies.destinations.address_settings import AddressSettings

XML = "".join(
    (
        setting("orders.eu", max_delivery_attempts=7, redelivery_delay=9),
        setting("gone", redelivery_delay=1),
        setting("anew", redelivery_delay=1, max_delivery_attempts=4),
    )
)
PROPERTIES = r"""
# a comment
! another one \
addressSettings."orders.eu".redeliveryDelay=501
addressSettings.all.maxDeliveryAttempts = 6
addressSettings."stock.#".redeliveryMultiplier=2.5
addressSettings."stock.#".redeliveryDelay: 700
  addressSettings.blank.redeliveryDelay	702
addressSettings.size.redeliveryDelay=5K
addressSettings.size.maxRedeliveryDelay= 2 Mi
addressSettings.letters.deadLetterAddress=DLA.x
addressSettings.letters.sendToDLAOnNoRoute=yes
addressSettings.letters.autoCreateDeadLetterResources=ON
addressSettings.letters.deadLetterQueuePrefix=P.
addressSettings.letters.deadLetterQueueSuffix=
addressSettings.letters.redeliveryCollisionAvoidanceFactor=0.15
addressSettings.late.expiryAddress=EXP
addressSettings.late.expiryDelay=500
addressSettings.late.minExpiryDelay=7
addressSettings.late.maxExpiryDelay=-1
addressSettings.late.noExpiry=1
addressSettings.late.autoCreateExpiryResources=true
addressSettings.late.expiryQueuePrefix=E.
addressSettings.late.expiryQueueSuffix=.e
addressSettings."\u0061\u0062c".redeliveryDelay=509
addressSettings.two\ words.redeliveryDelay=510
addressSettings.joined.\
    redeliveryDelay=51\
    1
addressesSettings.old.redeliveryDelay=507
addressSettings.filled.deadLetterAddress=${no.such:filled}
addressSettings.endless.maxDeliveryAttempts=-1
addressSettings.gone=-
addressSettings."anew"=-
addressSettings."anew".redeliveryDelay=3
addressConfigurations."P.DLQ".queueConfigs."P.DLQ".routingType=ANYCAST
addressConfigurations.P.queueConfigs.many.filterString=a='b'
addressConfigurations.P.queueConfigs.moved.address=Q
addressConfigurations.D=-
addressConfigurations.E.queueConfigs.E=-
maxRedeliveryRecords=3
persistDeliveryCountBeforeDelivery=true
globalMaxSize=100M
"""
SMALL = r"""
# of each kind one
addressSettings."orders.eu".redeliveryDelay=5K
addressSettings.#.deadLetterAddress : DLA
addressSettings.#.autoCreateDeadLetterResources yes
addressSettings.#.deadLetterQueue\
   Suffix=.\u0044
addressSettings."orders.#".maxDeliveryAttempts=3
addressSettings.gone=-
addressConfigurations."DLA".queueConfigs."q".filterString=a='b'
maxRedeliveryRecords=3
globalMaxSize=100M
"""
QUOTED = """
key.surround=$$
remove.value=GONE
addressSettings.$$s.1$$.redeliveryDelay=21
addressSettings.dash.deadLetterAddress=-
addressSettings.all=GONE
"""
PROPERTIES_JSON = json.dumps(
    {
        "addressSettings": {
            "json": {"redeliveryDelay": 11, "noExpiry": True, "redeliveryMultiplier": 1.5},
            "json.dots": {"maxDeliveryAttempts": "3"},
            '"json.quoted"': {"deadLetterAddress": "J"},
        },
        "addressConfigurations": {"J": {"queueConfigs": {"J": {"routingType": "ANYCAST", "filterString": "x=1"}}}},
    }
)
NAMES = (
    *(
        "orders.eu",
        "all",
        "stock",
        "stock.a.b",
        "blank",
        "size",
        "letters",
        "late",
        "abc",
        "two words",
        "joined",
        "old",
    ),
    *("filled", "endless", "gone", "anew", "json", "json.dots", "json.quoted", "any.other", "s.1", "dash"),
)


def properties(text: str, **options: object) -> ArtemisRules:
    rules = read(text, "broker.properties", **options).rules
    assert isinstance(rules, ArtemisRules)
    return rules


@pytest.mark.long_form
@pytest.mark.timeout(150)
def test_artemis_itself_has_each_setting_that_is_read_of_xml_properties_and_json(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("broker.xml", "a.properties", "b.json", "c.properties")]
    texts = (ARTEMIS.format(f"<address-settings>{XML}</address-settings>"), PROPERTIES, PROPERTIES_JSON, QUOTED)
    for file, text in zip(files, texts, strict=True):
        file.write_text(text, encoding="utf-8")
    rules = redelivery.policies.read(",".join(map(str, files))).rules
    assert isinstance(rules, ArtemisRules)
    given = ",".join(map(str, files[1:]))
    spec = replace(BROKER, command=lambda site: [*BROKER.command(site), "--properties", given])
    with (
        running(spec, artemis_with(XML, "D", "E", "F")) as broker,
        redelivery.connect(f"amqp://{broker.host}:{broker.ports['amqp']}") as connection,
    ):
        reported, queues = artemis_rules(connection, NAMES), artemis_queues(connection)
    for name in NAMES:
        itself, ours = reported.settings_for(name), rules.settings_for(name)
        for field in itself.fields_set - {"max_redelivery_delay"}:
            assert getattr(itself, field) == getattr(ours, field), (name, field)
        assert itself.delay(3) == ours.delay(3), name
    assert {"P.DLQ", "many", "moved", "J", "F"} <= queues.keys()
    assert queues.keys().isdisjoint(("D", "E"))
    assert {each.name for each in rules.queues} == {"P.DLQ", "many", "moved", "J"}


def test_properties_are_put_upon_the_settings_of_a_file_one_by_one(tmp_path: Path) -> None:
    one = 'addressSettings."#".redeliveryDelay=500\n'
    settings: dict[str, dict[str, object]] = {"#": {"dead_letter_address": "DLQ", "redelivery_delay": 5}}
    xml = written(tmp_path, "broker.xml", address_settings(**settings))
    upon = written(tmp_path, "broker.properties", f"{one}addressSettings.a.maxDelivery=\n")
    with pytest.raises(redelivery.ConfigError, match=r"broker\.properties:2:1: unknown"):
        redelivery.policies.read(f"{xml},{upon}")
    upon.write_text(one, encoding="utf-8")
    found = redelivery.policies.read(f"{xml},{upon}")
    assert (found.path, found.format) == (f"{xml},{upon}", "artemis")
    rules = found.explain("orders")
    assert rules.dead_letter == "DLQ"
    places = {each.name: str(each.place) for each in rules.settings if each.place}
    assert places["redelivery-delay"] == f"{upon}:1:1"
    assert places["dead-letter-address"].startswith(f"{xml}:3:")
    with EmbeddedBroker("upon", config=f"{xml},{upon}") as broker:
        assert broker.core.config.rules == found.rules
    shown = CliRunner().invoke(app, ["policy", "explain", f"{xml},{upon}", "orders"])
    assert (shown.exit_code, "then DLQ" in shown.stdout) == (0, True)


def test_only_properties_of_artemis_are_put_upon_another_file_and_only_upon_artemis(tmp_path: Path) -> None:
    xml = written(tmp_path, "broker.xml", address_settings(x={}))
    hornetq = written(tmp_path, "hornetq-configuration.xml", '<configuration xmlns="urn:hornetq"/>')
    upon = written(tmp_path, "broker.properties", "addressSettings.x.redeliveryDelay=5")
    with pytest.raises(redelivery.ConfigError, match=r"only properties are put upon .*, and this is hornetq"):
        redelivery.policies.read(f"{xml},{hornetq}")
    with pytest.raises(redelivery.ConfigError, match="HornetQ has no broker properties"):
        redelivery.policies.read(f"{hornetq},{upon}")
    with pytest.raises(redelivery.ConfigError, match="cannot be read"):
        redelivery.policies.read(f"{xml},{tmp_path / 'none'}")
    comma = written(tmp_path, "a,b.properties", "addressSettings.x.redeliveryDelay=5")
    assert redelivery.policies.read(comma).explain("x").delays[0].seconds == 0.005


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("#.redeliveryDelayMultiplier=2", r"unknown option 'redeliveryDelayMultiplier'.*'redeliveryMultiplier'"),
        ("#.redelivery-delay=2", "did you mean 'redeliveryDelay'"),
        ("#.sendToDlaOnNoRoute=true", "did you mean 'sendToDLAOnNoRoute'"),
        ("#.maxDeliveryAttempts=abc", "must be an integer from -1"),
        ("#.maxDeliveryAttempts=", "must be an integer"),
        ("#.maxDeliveryAttempts=2.5", "must be an integer"),
        ("#.redeliveryDelay=1.5", "must be an integer"),
        ("#.expiryDelay=5K", "must be an integer"),  # Artemis takes sizes for its longs, and 0 for this one
        ("#.redeliveryMultiplier=2,5", "must be a finite number"),
        ("#.redeliveryCollisionAvoidanceFactor=1.5", "from 0 to 1"),
        ("#.noExpiry=maybe", "use true or false"),
        ("#.deadLetterQueuePrefix=a b.", "use what can be a part of the name of a queue"),
        ("#.deadLetterAddress=", "use the name of one address"),
        ("#.deadLetterAddress=-", "removes what has a name"),
        ("#.deadLetterAddress=${none}", r"the placeholder \$\{none\} has no value"),
        ("a.b.redeliveryDelay=1", r'name an address and a setting of it: addressSettings\."a\.b"\.redeliveryDelay if'),
        ("x=5", "name an address and a setting of it"),
        ('"un.redeliveryDelay=1', "has no second one"),
        ('"a"b.redeliveryDelay=1', "has no second one before a dot"),
        ('"".redeliveryDelay=1', "without match"),
        ('"#.x".redeliveryDelay=1', "can only be the last word"),
        (r"a.redeliveryDelay=\u00zz", r"\\u needs four hexadecimal digits"),
    ],
)
def test_what_artemis_would_ignore_or_take_for_0_is_an_error_with_its_place(line: str, says: str) -> None:
    with pytest.raises(redelivery.ConfigError, match=rf"^broker\.properties:2:\d+: .*{says}"):
        properties(f"# first\naddressSettings.{line}\n")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("addressSetting.x.redeliveryDelay=1", "did you mean 'addressSettings'"),
        ("addressSettings(x).redeliveryDelay=1", "did you mean 'addressSettings'"),
        ("queueConfigs.x.deadLetterAddress=D", r'write addressSettings\."…"\.deadLetterAddress'),
        ("redeliveryDelay=5", r'write addressSettings\."…"\.redeliveryDelay'),
        ("deadLetterFoo=5", "is not a property of Artemis"),
        ("maxRedeliveryRecords.x=5", "is not a property of Artemis"),
        ("maxRedeliveryRecords=x", "must be an integer"),
        ("persistDeliveryCountBeforeDelivery=x", "use true or false"),
        ("addressConfigurations.A.queueConfigurations.a.routingType=ANYCAST", "did you mean 'queueConfigs'"),
        ("addressConfigurations.A.queueConfigs.a.routing-type=ANYCAST", "did you mean 'routingType'"),
        ("addressConfigurations.A.queueConfigs.a.routingType=anycast", "use ANYCAST or MULTICAST"),
        ("addressConfigurations.A.queueConfigs.a=5", "name a queue and a setting of it"),
        ("addressConfigurations=-", "name a queue"),
        ("addressConfigurations..queueConfigs.q.routingType=ANYCAST", "name a queue and a setting of it"),
        ("wildcardConfiguration.delimiter=ab", "use one character"),
        ("wildcardConfiguration.anyWord=~", "did you mean 'anyWords'"),
    ],
)
def test_a_property_of_the_same_kind_that_artemis_does_not_have_is_an_error(line: str, says: str) -> None:
    with pytest.raises(redelivery.ConfigError, match=rf"^broker\.properties:1:1: .*{says}"):
        properties(line)


def test_every_problem_of_a_file_is_in_one_error_and_what_is_about_something_else_is_unread() -> None:
    text = "addressSettings.a.redeliveryDelay=x\nglobal.a=5\naddressSettings.a.noExpiry=x\nglobal.b=5\n"
    with pytest.raises(redelivery.ConfigError, match=r"properties:1:1: [^\n]*\n[^\n]*properties:3:1: "):
        properties(text)
    found = read(text, "broker.properties", strict=False)
    assert [str(each) for each in found.unread] == ["global (broker.properties:2:1)"]


def test_a_key_that_stands_twice_is_an_error_however_it_is_quoted() -> None:
    with pytest.raises(redelivery.ConfigError, match=r":2:1: .*stands twice, first at broker\.properties:1:1"):
        properties('addressSettings.a.redeliveryDelay=1\naddressSettings."a".redeliveryDelay=2')


def test_another_quote_and_another_mark_of_removal_are_those_of_the_whole_file() -> None:
    rules = properties(
        "addressSettings.$$a.b$$.redeliveryDelay=5\naddressSettings.c.redeliveryDelay=5\naddressSettings.c=GONE\n"
        "key.surround=$$\nremove.value=GONE"
    )
    assert [each.match for each in rules.entries] == ["a.b"]


def test_a_queue_without_a_routing_type_is_multicast_as_in_artemis() -> None:
    rules = properties("addressConfigurations.A.queueConfigs.q.durable=true")
    assert rules.queues == (BoundQueue("A", "q", "multicast"),)


def test_wildcards_count_for_all_matches_wherever_they_stand() -> None:
    rules = properties(
        "addressSettings.a/~.redeliveryDelay=5\nwildcardConfiguration.delimiter=/\nwildcardConfiguration.anyWords=~"
    )
    assert rules.settings_for("a/b/c").redelivery_delay == 0.005


def test_bytes_are_latin_1_as_java_reads_them() -> None:
    content = "addressSettings.lat\xe9.redeliveryDelay=5".encode("latin-1")
    rules = read_content(content, "broker.properties").rules
    assert isinstance(rules, ArtemisRules)
    assert rules.entries[0].match == "lat\xe9"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"addressSettings": {"a": {"redeliveryDelay": [1]}}}', "no lists and no null"),
        ('{"addressSettings": {"a": {"redeliveryDelay": null}}}', "no lists and no null"),
        ('{"addressSettings": {}, "addressSettings.a.redeliveryDelay": 1}', "an object within an object for each dot"),
        ('{"addressSettings": {"a": {"redeliveryDelay": "x"}}}', "must be an integer"),
        ('{"addressSettings": {"a": 5}}', "name an address and a setting of it"),
    ],
)
def test_what_artemis_does_not_read_of_json_is_an_error_with_its_place(text: str, says: str) -> None:
    with pytest.raises(redelivery.ConfigError, match=rf"^broker\.json:1:\d+: .*{says}"):
        read(text, "broker.json")


def test_json_says_the_same_as_properties() -> None:
    found = read(PROPERTIES_JSON, "broker.json")
    assert found.format == "artemis_properties"
    again = read(redelivery.policies.write(found), "broker.properties")
    assert again.rules == found.rules
    assert isinstance(found.rules, ArtemisRules)
    assert found.rules.settings_for("json.dots") == AddressSettings(max_delivery_attempts=3)


def test_the_kind_is_known_by_its_keys_or_by_its_name() -> None:
    assert read("addressSettings.x.redeliveryDelay=1", "x").format == "artemis_properties"
    assert read("globalMaxSize=1", "etc/broker.properties").format == "artemis_properties"
    for name in ("x.properties", "application.properties"):
        with pytest.raises(redelivery.ConfigError, match="no property of a broker known here"):
            read("server.port=1", name)


def test_queues_behind_dead_letters_are_looked_for_in_the_file_that_has_them(tmp_path: Path) -> None:
    upon = written(tmp_path, "broker.properties", 'addressSettings."#".deadLetterAddress=DLQ')
    xml = written(tmp_path, "broker.xml", address_settings(x={}))
    alone, both = redelivery.policies.read(upon), redelivery.policies.read(f"{xml},{upon}")
    assert ["no queue stands behind DLQ" in str(each.explain("x")) for each in (alone, both)] == [False, True]


def test_a_file_of_properties_is_simulated() -> None:
    text = 'addressSettings."#".redeliveryDelay=500\naddressSettings."#".maxDeliveryAttempts=3'
    assert [each.at for each in simulate(read(text, "broker.properties"), "orders").attempts] == [0, 0.5, 1.0]
