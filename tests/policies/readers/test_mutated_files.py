"""A file in which anything is changed reads, or is a ConfigError: no other error, and no wait."""

from __future__ import annotations

import contextlib
import json
import random
import time

import pytest
from tests.policies.readers.documents import ARTEMIS, CLASSIC, policy_entries
from tests.policies.readers.test_activemq_file import DEFAULT, INDIVIDUAL, REDELIVERY
from tests.policies.readers.test_artemis_file import SETTINGS
from tests.policies.readers.test_json_files import BROKER, HOST, POLICY, QUORUM
from tests.policies.readers.test_qpid_files import CONFIG, HOSTS

import redelivery
from redelivery.policies.readers.formats import read_content, read_url
from redelivery.policies.writers.formats import write_rules

PLUGINS = REDELIVERY.format(fallback="true", dead="true", default=DEFAULT)
QUEUE = '<anycast><queue name="q"><filter string="a"/></queue></anycast>'
QUEUE = f'<addresses><address name="DLA">{QUEUE}</address></addresses>'
FILES = {
    "artemis": ARTEMIS.format(SETTINGS + QUEUE),
    "hornetq": ARTEMIS.format(SETTINGS).replace("urn:activemq", "urn:hornetq"),
    "activemq": CLASSIC.format(policy_entries(INDIVIDUAL) + PLUGINS),
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


def use(name: str, content: bytes) -> None:
    """Read it, with and without ``strict``; explain and write what was read."""
    for strict in (True, False):
        with contextlib.suppress(redelivery.ConfigError):
            if name == "uri":
                found = read_url(content.decode(errors="replace"), strict=strict)
            else:
                found = read_content(content, "file", strict=strict)
            str(found.explain("orders.eu"))
            found.redelivery_policies.policy_for("orders.eu")
            found.dead_letter_strategies.strategy_for("orders.eu")
            write_rules(found.rules)


def play(name: str, number: int, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311  # repeatable, not secret
    content = FILES[name].encode()
    for each in range(number):
        changed = mutated(content, rng)
        began = time.monotonic()
        try:
            use(name, changed)
        except Exception as error:
            raise AssertionError(f"{name}, seed {seed}, change {each}: {changed!r}") from error
        assert time.monotonic() - began < LONGEST, (name, seed, each)


@pytest.mark.parametrize("name", FILES)
def test_a_changed_file_reads_or_is_a_config_error(name: str) -> None:
    play(name, 60, seed=1)


@pytest.mark.long_form
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(2, 10))
@pytest.mark.parametrize("name", FILES)
def test_very_many_changed_files_read_or_are_config_errors(name: str, seed: int) -> None:
    play(name, 1_600, seed)  # 9 files, 8 seeds, 1,600 each: 115,200
