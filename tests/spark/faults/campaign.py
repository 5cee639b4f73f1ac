"""A campaign: random events while messages come, of our sender or of another client, until all is in the table.

``REDELIVERY_SPARK_CAMPAIGN=stomp-rabbitmq:driver:foreign,amqp-artemis:lanes:ours`` names its cells: pair, receiver
(``driver``, ``lanes`` for two lanes, or ``executor``) and sender. ``REDELIVERY_SPARK_EVENTS`` says how many events each
has, 30 without it; ``REDELIVERY_SPARK_SEED`` begins the random numbers. A cell may be run in parts, with a seed each,
or with as many events as come within ``REDELIVERY_SPARK_SECONDS``. The short form leaves out cells of some pairs:
run it with ``REDELIVERY_FORM=all``.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from time import monotonic, sleep
from typing import Any, Final, Literal

from tests.spark.faults.cases import RETRIES, Case
from tests.spark.faults.jobs import HungError, Outcome
from tests.spark.faults.orders import Order
from tests.spark.faults.stage import Sender, Stage

CELLS: Final = "REDELIVERY_SPARK_CAMPAIGN"
_EVENTS, _SEED, _SECONDS = "REDELIVERY_SPARK_EVENTS", "REDELIVERY_SPARK_SEED", "REDELIVERY_SPARK_SECONDS"
_OTHER: Final = 0.12  # of the events: the broker is killed; as many: the whole session, at any moment
_COMES: Final = 10.0  # seconds in which a step comes, or it does not happen
_EVERY: Final = 0.4  # seconds between two sends while it is waited for
_MOST: Final = 4  # tries for each event, so that a campaign ends
_QUIET: Final = 420.0  # seconds for a run without events
_AT_THE_START: Final = "epochs/*"  # a step of a query's beginning
_LAST: Final = 240.0  # seconds for messages that a broker is slow to release

Do = Literal["kill", "all", "driver", "full", "broken"]
Who = Literal["runner", "lane", "worker"]


@dataclass(frozen=True, slots=True)
class Cell:
    """One of them."""

    pair: str
    receiver: Literal["driver", "lanes", "executor"]
    sender: Sender

    def case(self) -> Case:
        """As the others are."""
        receiver: Literal["driver", "executor"] = "executor" if self.receiver == "executor" else "driver"
        options = {"lanes": "2"} if self.receiver == "lanes" else {}
        return Case(self.name, receiver, self.play, RETRIES, options=options)

    @property
    def name(self) -> str:
        return f"campaign: {self.receiver}: {self.sender}"

    def play(self, stage: Stage) -> str:
        """Return the events by kind, and how many times a query began."""
        stage.sender, stage.run_seconds, stage.last_seconds = self.sender, _QUIET, _LAST
        chance = Random(f"{os.environ.get(_SEED, '34')} {self}")  # noqa: S311  # a campaign that can be repeated
        wanted = int(os.environ.get(_EVENTS, "30"))
        seen: Counter[str] = Counter()
        query, tries = Query(stage), 0
        until = monotonic() + float(os.environ.get(_SECONDS, "inf"))
        while seen.total() < wanted and tries < _MOST * wanted and monotonic() < until:
            tries += 1
            stage.send(chance.randint(5, 20))
            event = self._event(stage, query, chance)
            seen.update([event] if event else [])
        query.end()
        stage.orders.forget()
        assert seen.total() >= wanted or monotonic() >= until, (
            f"only {seen.total()} of {wanted} events came in {tries} tries"
        )
        stage.complete(Outcome(died=True))
        events = ", ".join(f"{kind}: {count}" for kind, count in sorted(seen.items()))
        return f"{events}; the query began {query.begun} times"

    def _event(self, stage: Stage, query: Query, chance: Random) -> str:
        """Let something happen to the query; its kind, or nothing where its step did not come in time."""
        kind = chance.random()
        if kind < 2 * _OTHER and not query.goes_on():
            return ""
        if kind < _OTHER and hasattr(stage.broker, "broker"):
            sleep(chance.uniform(0.2, 3.0))
            stage.broker.kill()
            stage.broker.restart()
            return "broker killed"
        if kind < 2 * _OTHER:
            sleep(chance.uniform(0.2, 3.0))
            stage.job_now().kill()
            return "all killed at any moment"
        order = self._order(chance)
        stage.orders.begin_anew()
        if order.name == _AT_THE_START:
            query.end()
        stage.order(order)
        until = monotonic() + _COMES
        while query.goes_on() and not query.waited_for(stage.orders.happened, _EVERY) and monotonic() < until:
            stage.send(chance.randint(1, 5))
        event = f"{order.who}: {order.do}" if stage.orders.happened() else ""
        stage.orders.begin_anew()
        return event

    def _order(self, chance: Random) -> Order:
        """At a random step of a random process."""
        receives: Who = {"driver": "runner", "lanes": "lane", "executor": "worker"}[self.receiver]  # type: ignore[assignment]  # of these three
        who: Who = chance.choice((receives, receives, receives, "runner", "worker"))
        steps: dict[Who, tuple[tuple[Any, str], ...]] = {
            receives: (("write", "seg/*.arrow"), ("write", "heads/*"), ("write", "seg/*ok")),
            "runner": (("write", "commits/*"), ("write", _AT_THE_START), ("delete", "seg/*")),
            "worker": (("read", "seg/*.arrow"),),
        }
        found = steps[receives] if who == receives else steps[who]
        operation, name = chance.choice(found)
        do: Do = chance.choice(("kill", "kill", "kill", "kill", "all", "driver", "full", "broken"))
        when: Literal["before", "after"] = chance.choice(("before", "after"))
        skip = 0 if name == _AT_THE_START else chance.randint(0, 1)
        return Order(do=do, when=when, operation=operation, name=name, who=who, skip=skip)


class Query:
    """The one that events meet: one that has survived an event meets the next, else it begins anew."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._now: int | None = None
        self.begun = 0

    def goes_on(self) -> bool:
        """It runs, or begins; False: Spark, or the source, has ended it at once."""
        if self._now is not None and self._stage.job_now().runs(self._now):
            return True
        started = self._stage.start(forever=True)
        self._now = started if isinstance(started, int) else None
        self.begun += 1
        return self._now is not None

    def waited_for(self, happened: Callable[[], int], seconds: float) -> bool:
        """Whether it happens in that time."""
        until = monotonic() + seconds
        while not happened() and monotonic() < until:
            sleep(0.05)
        return bool(happened())

    def end(self) -> None:
        """Stop it, if it runs."""
        number, self._now = self._now, None
        if number is not None and self._stage.job_now().alive:
            try:
                self._stage.job_now().stop(number)
            except HungError:
                self._stage.jobs.drop(self._stage.master)


def cells() -> list[Cell]:
    """The cells that are asked for."""
    return [Cell(*each.split(":")) for each in os.environ.get(CELLS, "").split(",") if each]  # type: ignore[arg-type]  # a wrong one fails
