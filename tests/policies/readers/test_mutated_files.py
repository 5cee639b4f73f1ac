"""A file in which anything is changed reads, or is a ConfigError: no other error, and no wait.

What was read is then used as every command uses it, and by the engine of the embedded broker.
"""

from __future__ import annotations

import contextlib
import json
import random
import time
from functools import cache
from pathlib import Path

import pytest
from tests.broker.rules.failing import Bench
from tests.policies.readers.documents import ARTEMIS, CLASSIC, policy_entries, redelivery_plugin
from tests.policies.readers.test_activemq_file import DEFAULT, INDIVIDUAL
from tests.policies.readers.test_artemis_file import SETTINGS
from tests.policies.readers.test_artemis_properties import PROPERTIES_JSON, SMALL
from tests.policies.readers.test_helm_values import VALUES
from tests.policies.readers.test_json_files import BROKER, HOST, POLICY, QUORUM
from tests.policies.readers.test_kubernetes_files import RESOURCES
from tests.policies.readers.test_qpid_files import CONFIG, HOSTS
from tests.policies.readers.test_spring_boot_files import PROPERTIES as SPRING_PROPERTIES
from tests.policies.readers.test_spring_boot_files import YAML
from tests.policies.readers.test_spring_files import BEANS
from tests.policies.readers.test_wildfly_file import JBOSS, WHOLE

import redelivery
from redelivery.broker import EmbeddedBroker
from redelivery.broker.engine.rules.rules import Manner
from redelivery.operate.convert import convert
from redelivery.operate.diff import diff
from redelivery.operate.doctor.chosen import choose
from redelivery.operate.doctor.configured import check_rules
from redelivery.operate.simulate import simulate
from redelivery.policies.brokers.formats import FORMATS, read_content, read_url
from redelivery.policies.brokers.policies import BrokerPolicies

PLUGINS = redelivery_plugin(default=DEFAULT)
QUEUE = '<anycast><queue name="q"><filter string="a"/></queue></anycast>'
QUEUE = f'<addresses><address name="DLA">{QUEUE}</address></addresses>'
FILES = {
    "artemis": ARTEMIS.format(SETTINGS + QUEUE),
    "artemis properties": SMALL,
    "artemis JSON": PROPERTIES_JSON,
    "hornetq": ARTEMIS.format(SETTINGS).replace("urn:activemq", "urn:hornetq"),
    "wildfly": WHOLE,
    "wildfly HornetQ": JBOSS,
    "activemq": CLASSIC.format(policy_entries(INDIVIDUAL) + PLUGINS),
    "kubernetes": RESOURCES,
    "spring": BEANS,
    "helm": VALUES,
    "spring_boot": YAML,
    "spring_boot properties": SPRING_PROPERTIES,
    "qpid": CONFIG.replace("<virtualhosts>${conf}/virtualhosts.xml</virtualhosts>", HOSTS),
    "broker_j": json.dumps(BROKER),
    "broker_j host": json.dumps(HOST),
    "rabbitmq policies": json.dumps([POLICY]),
    "rabbitmq": json.dumps({"policies": [POLICY], "queues": [QUORUM], "bindings": []}),
    "uri": "failover:(tcp://a:1,tcp://b:2)?jms.redeliveryPolicy.maximumRedeliveries=3&jms.prefetchPolicy.all=5",
}
WORDS = (
    *(
        "<",
        ">",
        "&",
        "/",
        '"',
        "'",
        "${x}",
        "${x:1}",
        "#",
        "*",
        ">.x",
        "-1",
        "1e999",
        "9" * 30,
        "é",
        "\x00",
        "null",
        "true",
    ),
    *(
        "<queue/>",
        "<name>x</name>",
        '{"a":',
        "[[",
        "]",
        "}",
        "<!DOCTYPE a>",
        "<![CDATA[",
        "-->",
        "x" * 300,
        "&#0;",
        "(",
        "?",
    ),
)
MANY = {name: 6_250 for name in ("artemis properties", "artemis JSON", "wildfly", "wildfly HornetQ")}
CLIENTS = ("spring", "spring_boot", "spring_boot properties")  # whose policies no broker has
CLIENT = redelivery.RedeliveryPolicy(maximum_redeliveries=2)
LONGEST = 5.0  # seconds for one file, on a machine that does other things too


def mutated(content: bytes, rng: random.Random) -> bytes:
    """The content with one to four changes: bytes or words put in, left out, doubled or moved."""
    data = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data) + 1)
        to = min(len(data), at + rng.choice((1, 1, 3, 20, 200)))
        match rng.randrange(6):
            case 0:
                del data[at:to]
            case 1:
                data[at:at] = rng.choice(WORDS).encode()
            case 2:
                data[at:to] = rng.choice(WORDS).encode()
            case 3:
                data[at:at] = data[at:to]
            case 4:
                other = rng.randrange(len(data) + 1)
                data[at:at] = data[other : other + 40]
            case _:
                data[at:to] = bytes(rng.randrange(256) for _ in range(rng.randint(1, 3)))
    return bytes(data)


@cache
def unchanged(name: str) -> BrokerPolicies:
    return read(name, FILES[name].encode(), strict=True)


def read(name: str, content: bytes, *, strict: bool) -> BrokerPolicies:
    if name == "uri":
        return read_url(content.decode(errors="replace"), strict=strict)
    return read_content(content, "broker.properties" if name == "artemis properties" else "file", strict=strict)


def use(name: str, content: bytes, *, fully: bool) -> bool:
    """Read it, with and without ``strict``, and use what was read; whether it was read without."""
    with contextlib.suppress(redelivery.ConfigError):
        read(name, content, strict=True)
    try:
        found = read(name, content, strict=False)
    except redelivery.ConfigError:
        return False
    rules = found.explain("orders.eu")
    str(rules)
    assert len(rules.delays) <= 1000
    found.redelivery_policies.policy_for("orders.eu")
    found.dead_letter_strategies.strategy_for("orders.eu")
    with contextlib.suppress(redelivery.ConfigError):
        FORMATS[found.format].write(found.rules)
    if fully:
        use_fully(name, found)
    return True


def use_fully(name: str, found: BrokerPolicies) -> None:
    for client in (None, CLIENT):
        str(simulate(found, "orders.eu", client))
    assert diff(found, found) == ()
    for each in diff(unchanged(name), found):
        str(each)
    for to in ("python", "artemis"):
        with contextlib.suppress(redelivery.ConfigError):
            convert(found, to)
    list(check_rules(found, (), prefetch=100, charges_prefetched=True))
    choose(found, ())
    with contextlib.suppress(redelivery.ConfigError):  # a filter that is not a selector; a client's URL
        obey(found)


def obey(found: BrokerPolicies) -> None:
    """The engine of the embedded broker, by these rules, with a message that fails, and one that expires."""
    bench = Bench(found)
    bench.send("orders.eu")
    bench.send("orders.eu", "late", expiration=bench.now + 10_000)
    subscription, box = bench.consumer("orders.eu")
    for manner in (None, *Manner):
        if box or bench.await_next(box):
            dispatch = bench.taken(box)
            if manner is None:
                bench.engine.release((dispatch,), bench.now)
            else:
                bench.engine.poison(dispatch, "it was bad", bench.now, manner)
    bench.engine.unsubscribe(subscription, bench.now, all_seen=True, manner=Manner.LOST)
    bench.pass_time(60_000)


def play(name: str, number: int, seed: int, *, fully: int = 1) -> None:
    """``fully``: of so many one is simulated, compared, converted and obeyed too."""
    rng = random.Random(seed)  # noqa: S311  # repeatable, not secret
    content = FILES[name].encode()
    understood = 0
    for each in range(number):
        changed = mutated(content, rng)
        began = time.monotonic()
        try:
            understood += use(name, changed, fully=each % fully == 0)
        except Exception as error:
            raise AssertionError(f"{name}, seed {seed}, change {each}: {changed!r}") from error
        assert time.monotonic() - began < LONGEST, (name, seed, each)
    assert understood > 0  # else nothing of it was used


@pytest.mark.parametrize("name", FILES)
def test_a_changed_file_reads_or_is_a_config_error(name: str) -> None:
    play(name, 60, seed=1)


@pytest.mark.long_form
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(2, 10))
@pytest.mark.parametrize("name", FILES)
def test_very_many_changed_files_read_or_are_config_errors(name: str, seed: int) -> None:
    """Eight seeds: 12,800 changes of a file, and 50,000 of those in ``MANY``, of which two are of one format."""
    play(name, MANY.get(name, 1_600), seed, fully=25 if name in MANY else 4)


@pytest.mark.long_form
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", [each for each in FILES if each != "uri"])
def test_an_embedded_broker_starts_with_a_changed_file_or_is_a_config_error(name: str, tmp_path: Path) -> None:
    rng = random.Random(17)  # noqa: S311  # repeatable, not secret
    file, started = tmp_path / "file", 0
    for number in range(400):
        file.write_bytes(mutated(FILES[name].encode(), rng))
        with contextlib.suppress(redelivery.ConfigError):
            with EmbeddedBroker(f"mutated-{number}", config=file) as broker:
                broker.send("orders.eu", "hello")
                with redelivery.connect(broker.vm_url) as connection, connection.session() as session:
                    session.consumer("orders.eu")
            started += 1
    assert (started > 0) == (name not in CLIENTS)
