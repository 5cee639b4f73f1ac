"""Where our side of a case spends its time: for a reader of the terminal, and for the page."""

from __future__ import annotations

import cProfile
import io
import pstats
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from benchmarks.cases import Case, once, whole
from benchmarks.places import FAKE, BrokerPlace, Place, fake_place
from benchmarks.plan import CASES
from benchmarks.results import BenchmarkError, Profile
from redelivery.testing.brokers.real import UnavailableError, running

ROWS: Final = 5  # functions of a summary
LISTED: Final = 40
WAITS: Final = ("poll", "acquire", "select")  # calls that spend no processor time
FAKE_COUNT, REAL_COUNT = 20_000, 4_000


def listing(name: str, scale: float, folder: Path) -> str:
    """Every function of one case, ``protocol/broker/case`` or ``protocol/case``; the raw data go to the folder."""
    protocol, _, rest = name.partition("/")
    broker, _, key = rest.rpartition("/")
    case = next((case for case in CASES.get(protocol, ()) if case.key == key), None)
    if case is None:
        known = ", ".join(f"{protocol}/{case.key}" for protocol, cases in CASES.items() for case in cases)
        raise BenchmarkError(f"no case {name!r}; there are {known}, and the same as protocol/broker/case")
    with ExitStack() as stack:
        if broker in {"", FAKE}:
            place: Place = stack.enter_context(fake_place(protocol))
        else:
            try:
                place = BrokerPlace(protocol, stack.enter_context(running(broker)))
            except UnavailableError as error:
                raise BenchmarkError(f"no {broker}: {error}") from error
        count = whole(case, scale * (FAKE_COUNT if place.broker == FAKE else REAL_COUNT))
        plain = once(place, case, case.contenders[0], count)
        profiler = cProfile.Profile()
        once(place, case, case.contenders[0], count, profiler)
    folder.mkdir(exist_ok=True)
    profiler.dump_stats(folder / f"{name.replace('/', '-')}.prof")
    text = io.StringIO()
    pstats.Stats(profiler, stream=text).sort_stats("tottime").print_stats(LISTED)
    head = f"{place.name}: {case.title}: {plain.seconds / count * 1e6:.1f} µs per message without the profiler"
    return f"{head}, {(plain.cpu or 0) / count * 1e6:.1f} of them processor time\n{text.getvalue()}"


def why(place: Place, case: Case, against: str, ratio: float, scale: float) -> Profile:
    """The functions that cost most, and how long we wait."""
    count = whole(case, scale * REAL_COUNT)
    plain = once(place, case, case.contenders[0], count)
    profiler = cProfile.Profile()
    once(place, case, case.contenders[0], count, profiler)
    profiler.create_stats()
    own = {where: numbers[2] for where, numbers in profiler.stats.items() if not waits(where[2])}
    total = sum(own.values())
    largest = sorted(own, key=lambda where: -own[where])[:ROWS]
    functions = tuple((named(where), own[where] / total) for where in largest)
    return Profile(place.name, case.title, against, ratio, max(0.0, 1 - (plain.cpu or 0) / plain.seconds), functions)


def waits(function: str) -> bool:
    """Whether a function of a profile spends no processor time."""
    return function.startswith("<") and any(f" '{name}'" in function for name in WAITS)


def named(where: tuple[str, int, str]) -> str:
    """``file:function``, or the name of a built-in."""
    file, _, function = where
    if file == "~":
        return function.strip("<>").removeprefix("built-in method ").removeprefix("method ")
    return f"{Path(file).parent.name}/{Path(file).name}:{function}"
