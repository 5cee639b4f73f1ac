"""kill -9 of `redelivery dlq replay`, `edit`, `move`, `import`, `purge` and `undo`: no letter is lost, none doubled.

See `letters` for a run, and docs/faults.md for a long one.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults.letters import COMMANDS, LetterRun, LetterSite
from tests.faults.stored import NAME, started
from tests.run.forms import brief

# Kills of each command on each pair; `make nightly` has 25.
KILLS = int(os.environ.get("REDELIVERY_LETTER_KILLS", "1" if brief() else "3"))
_RECORD = os.environ.get("REDELIVERY_LETTER_RECORD")  # a file to which a line is written of each run
SITES = (
    *("stomp-stored", "amqp-stored", "stomp-activemq", "amqp-activemq", "amqp-artemis", "amqp-qpid"),
    *("stomp-rabbitmq", "amqp-rabbitmq", "stomp-rabbitmq4", "amqp-rabbitmq4", "stomp-artemis"),
)


@pytest.fixture(scope="module")
def stored() -> Iterator[dict[str, str]]:
    with started(NAME) as broker:
        yield dict(broker.urls)


@pytest.fixture
def site(request: pytest.FixtureRequest) -> LetterSite:
    name = request.param
    protocol, _, broker = name.partition("-")
    if protocol == "amqp":
        pytest.importorskip("proton", reason="AMQP is missing")
    if broker == "stored":
        return LetterSite(name, request.getfixturevalue("stored")[protocol])
    real = request.getfixturevalue(broker)
    environment = {}
    if "rabbitmq" in broker or name == "stomp-artemis":
        login = "" if "rabbitmq" in broker else "admin:admin@"
        environment["REDELIVERY_MANAGEMENT"] = real.http_url.replace("//", f"//{login}")
    return LetterSite(name, getattr(real, f"{protocol}_url"), environment)


# In the short form each pair has one of the commands, the next one, until each command has had its turn.
CASES = [
    pytest.param(
        site, command, id=f"{site}-{command}".replace(" ", "_"), marks=() if number == place else pytest.mark.long_form
    )
    for place, site in enumerate(SITES)
    for number, command in enumerate(COMMANDS)
]


@pytest.mark.timeout(120 + 30 * KILLS)
@pytest.mark.parametrize(("site", "command"), CASES, indirect=["site"])
def test_nothing_is_lost_or_doubled_and_each_receipt_holds(site: LetterSite, command: str, tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(1 << 30)
    print(f"seed {seed}")
    run = LetterRun(site, command, tmp_path, random.Random(seed))  # noqa: S311  # a test that can be repeated
    run.play(KILLS)
    if _RECORD is not None:
        said = {"pair": site.name, "command": command, "kills": run.kills, "lost": run.lost, "doubled": run.doubled}
        with open(_RECORD, "a", encoding="utf-8") as file:
            print(json.dumps({**said, "at": run.at}), file=file)
    assert run.lost == 0
    assert not site.transacted or run.doubled == 0
