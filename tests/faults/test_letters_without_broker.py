"""A broker that ends in the middle of `redelivery dlq`: the error says what goes on with it, and nothing is lost."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path
from typing import Final

import pytest
from tests.faults.letters import UNDO, UNPURGE, LetterRound, LetterRun, LetterSite
from tests.faults.letters_victim import BEFORE_COMMIT, COMMITTED, MEANWHILE, SENT, Struck
from tests.faults.stored import NAME, process_of, started

from redelivery.testing.brokers.real import RealBroker

SITES: Final = ("stomp-stored", "amqp-stored", "stomp-activemq", "amqp-activemq", "amqp-artemis")
COMMANDS: Final = ("replay", "edit", "move", "import", "purge", UNDO, UNPURGE)
ENDS: Final = {"killed": signal.SIGKILL, "stopped": signal.SIGTERM}
# In the second of three transactions, but for an import, which is one.
POINTS: Final = {SENT: 70, BEFORE_COMMIT: 2, MEANWHILE: 2, COMMITTED: 1}


@pytest.fixture(scope="module")
def brokers() -> Iterator[dict[str, RealBroker]]:
    """Those that were asked for, each started once, by their names; they are these tests' own."""
    with ExitStack() as opened:

        class Brokers(dict[str, RealBroker]):
            def __missing__(self, name: str) -> RealBroker:
                self[name] = found = opened.enter_context(started(name))
                return found

        yield Brokers()


def _cases() -> Iterator[object]:
    """Each command at each point, on each pair; in the short form some, on the embedded broker only."""
    numbers = count()
    for site in SITES:
        for command in COMMANDS:
            for point in POINTS:
                if point == SENT and command == "purge":
                    continue
                number = next(numbers)
                marks = () if site.endswith("stored") and number % 13 == 0 else pytest.mark.long_form
                end = tuple(ENDS)[number % 2]
                yield pytest.param(
                    site, command, point, end, id=f"{site}-{command}-{point}-{end}".replace(" ", "_"), marks=marks
                )


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("site", "command", "point", "end"), list(_cases()))
def test_the_error_names_what_goes_on_and_nothing_is_lost_or_doubled(
    site: str, command: str, point: str, end: str, brokers: dict[str, RealBroker], tmp_path: Path
) -> None:
    protocol, _, name = site.partition("-")
    if protocol == "amqp":
        pytest.importorskip("proton", reason="AMQP is missing")
    broker = brokers[NAME if name == "stored" else name]
    if broker.provider is None:
        pytest.skip("this broker was not started by the test run, so it is not ours to end")
    with closing(_round(LetterSite(site, broker.urls[protocol], lasting=True), command, tmp_path)) as place:
        number = 1 if command == "import" and point != SENT else POINTS[point]
        done = place.run(place.command(), point, number, Struck(process_of(broker), ENDS[end]))
        again = place.going_on()
        if done.code:
            assert done.code == 1, done
            assert f"'redelivery dlq {again[0]} {again[1]}' goes on" in done.errors, done
        else:  # all of it was confirmed before: an import is one transaction, and a stop takes its time
            assert (command, point) == ("import", COMMITTED) or point == MEANWHILE, done
        broker.kill()
        broker.restart()
        place.look_again()
        # Artemis 2.44 that is stopped while it commits can keep what was sent and release what was taken
        if (name, end, point) != ("artemis", "stopped", MEANWHILE):
            place.verify()
        done = place.run(again)
        assert done.code == 0 or "nothing is left" in done.errors, done
        place.verify(ended=True)
        assert place.balance() == (0, 0)


def _round(site: LetterSite, command: str, folder: Path) -> LetterRound:
    """Its letters, whose command is not yet run."""
    run = LetterRun(site, command, folder, random.Random(0))  # noqa: S311  # nothing here is random
    place = LetterRound(run, site.connect())
    place.prepare()
    return place
