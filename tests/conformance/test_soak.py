"""Work that goes on for minutes while the connections break all the time: nothing is lost, and nothing grows.

The short form takes seconds. `make soak` takes ten minutes for each pair, half of them with threads and half with
asyncio, with a fault every two seconds. `scripts/soak-report` does so on all pairs and writes docs/soak.md.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Any, Final

import pytest
from tests.conformance.outage import Counted, Outage
from tests.conformance.soak.faults import ANSWER, HEARTBEAT, Faults
from tests.conformance.soak.memory import MEGABYTE, STEEPEST, THERE, Memory
from tests.conformance.soak.program import DRIVERS, PATIENCE, Sent
from tests.conformance.soak.tally import Handled, Tally, text_of
from tests.conformance.stage import Stage
from tests.faults.campaign import kill_and_restart
from tests.faults.promises import PROMISES

from redelivery import ReconnectPolicy
from redelivery.events import ConnectionLost, Reconnected

MINUTES: Final = float(os.environ.get("REDELIVERY_SOAK_MINUTES", "0.1"))
LONG: Final = MINUTES >= 1
SECONDS: Final = MINUTES * 60 / len(DRIVERS)  # each
FAULTS: Final = 2.0 if LONG else 0.5  # seconds between two
PAUSE: Final = 0.01 if LONG else 0.002  # seconds between two sends
RECORD: Final = "REDELIVERY_SOAK_RECORD"  # a file, to which each test adds a line of JSON
# In the short form the second half is too short for a slope, and pytest keeps what was logged.
MOST_GROWTH: Final = 128.0  # MB, from the beginning
STEADY: Final = 240.0  # seconds after which the slope of the second half says something


def await_all(expected: Tally, handled: Tally) -> list[int]:
    """What has not come when time is up."""
    last = monotonic() + PATIENCE
    while (missing := expected.without(handled)) and monotonic() < last:
        threading.Event().wait(0.1)
    return missing


def look_again(request: pytest.FixtureRequest, stage: Stage) -> bool:
    """Whether the broker was started again, so that it delivers what it may hide: see docs/brokers/artemis.md."""
    kind = stage.pair.kind
    promise = PROMISES.get(kind.name)
    if kind.broker is None or promise is None or promise.hides is None:
        return False
    broker = request.getfixturevalue(kind.broker)
    if broker.provider is None:
        return False
    kill_and_restart(broker, stage.pair.url)
    return True


def confirms(stage: Stage) -> bool:
    """Whether the broker says that it has an acknowledgement, or the commit that has it."""
    promise = PROMISES.get(stage.pair.kind.name)
    return promise is None or (promise.window is None and promise.behind is None)


def keep(**row: object) -> None:
    """For scripts/soak-report."""
    if RECORD in os.environ:
        with Path(os.environ[RECORD]).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


@pytest.mark.everywhere_in_long_form
@pytest.mark.in_turns
@pytest.mark.skipif(not THERE, reason="memory is measured by /proc")
@pytest.mark.timeout(SECONDS + 5 * PATIENCE)
@pytest.mark.parametrize("driver", DRIVERS)
def test_nothing_is_lost_and_nothing_grows(
    request: pytest.FixtureRequest,
    stage: Stage,
    outage: Outage,
    driver: str,
    record_property: Callable[[str, object], None],
) -> None:
    handled, sender = Handled(confirmed=confirms(stage)), Counted()

    def happened(kind: type) -> int:
        return sender.numbers[kind] + handled.events[kind]

    common = {
        "url": outage.url,
        "reconnect": ReconnectPolicy(maximum_delay=0.1),
        "heartbeat": HEARTBEAT,
        "request_timeout": ANSWER,
    }
    sending: dict[str, Any] = {**common, "observer": sender}
    if stage.pair.can("duplicate ids"):
        sending["deduplicate_sends"] = True
    mode = "transacted" if stage.pair.can("transactions") else "client"
    container = {"concurrency": 2, "ack_mode": mode, "prefetch": 20}
    sent = Sent(handled, PAUSE)
    program = DRIVERS[driver](stage, sent, sending, {**common, "observer": handled}, container)
    request.addfinalizer(program.close)
    program.start()
    begun = monotonic() + PATIENCE  # brokers that have just been started are slow with their first messages
    while handled.different <= 100:
        assert monotonic() < begun, "it has not begun"
        threading.Event().wait(0.1)
    faults = Faults(outage.gate, 7, lambda: happened(ConnectionLost), lambda: happened(Reconnected), connections=2)
    behind: list[int] = []  # messages that wait when a fault comes
    memory, end = Memory(SECONDS), monotonic() + SECONDS
    while monotonic() < end:
        memory.sample()
        faults.between(FAULTS)
        behind.append(sent.behind)
        handled.fault()
        faults.next()
    program.stop_sending()
    expected = sent.confirmed
    missing = await_all(expected, handled)
    growth, slope = memory.growth(), memory.slope()
    lost, hidden = missing, 0
    if missing and look_again(request, stage):
        lost = await_all(expected, handled)
        hidden = len(missing) - len(lost)
    drained = program.drain()
    twice, causes, unexplained = handled.more_than_once(), handled.causes(), handled.unexplained()
    summary = (
        f"{text_of(faults.counts)}; {happened(Reconnected)} reconnections: {expected.different} confirmed, "
        f"{sent.doubted} in doubt, {len(lost)} lost, {hidden} hidden, {len(twice)} handled more than once "
        f"({text_of(causes)}; {len(unexplained)} unexplained: {unexplained[:5]}); {growth}, {slope:+.2f} MB a minute"
    )
    record_property("soak", summary)
    print(summary)
    keep(
        pair=stage.pair.kind.title,
        driver=driver,
        minutes=SECONDS / 60,
        faults=faults.counts,
        reconnections=happened(Reconnected),
        confirmed=expected.different,
        in_doubt=sent.doubted,
        lost=len(lost),
        hidden=hidden,
        behind=median(behind),
        twice=len(twice),
        causes=causes,
        unexplained=len(unexplained),
        used=[memory.first, memory.middle, memory.last],
        slope=slope,
    )
    assert not lost, summary
    assert not unexplained, summary
    assert drained, summary
    if "deduplicate_sends" in sending:
        assert not sent.doubted, summary
    assert growth["threads"] <= 4, summary
    assert growth["descriptors"] <= 8, summary
    if SECONDS >= STEADY:
        assert slope <= STEEPEST, summary
    else:
        assert growth["memory"] <= MOST_GROWTH * MEGABYTE, summary
