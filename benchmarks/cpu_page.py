"""``python -m benchmarks.cpu_page``: processor time per message of each case, as a page: docs/cpu.md.

Beside the main thread, another thread and asyncio stands a loop over a bare socket that does the least, in Python, with
the same peer: what is left over it is ours. The targets were set on another machine, so they are shown for this one
too: times the median of what the same bare loops take here and took there. The numbers are kept in docs/cpu.json:
``--only CASE`` measures some rows again, and ``--judge`` none: it writes the page with the targets of today.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any, Final

from benchmarks.figures import Figures
from benchmarks.machine import DATE, check_same, facts, in_process
from benchmarks.targets import FLOORS, MESSAGE, TEXT, UNKNOWN, WHY, item, paragraphs, table, written

APART: Final = 0.10  # of the lesser: two measurements of the same code that are further apart are none
LOOP_LIMIT: Final = 1.3  # asyncio may take so many times as long as threads
MESSAGES: Final = 20_000
ROUNDS: Final = 5
ANSWERED: Final = ("commit-10", "commit-1", "send", "amqp-send")  # a message waits for an answer
IN_LOOP: Final = ("auto", "auto-many", "individual", "dups-ok", "commit-100", *ANSWERED, "amqp-auto", "amqp-individual")
HEADS: Final = (
    *("case", "main thread", "again", "spread", "another thread", "asyncio", "asyncio / threads"),
    *("bare loop", "target", "target here", "reached"),
)


@dataclass(slots=True)
class Record:
    """``taken``: by case, the µs of each way to run it; ``profiles``: by the title that the page gives them.

    ``again``: the date of the cases that were measured later than the rest.
    """

    machine: Mapping[str, str]
    messages: int
    rounds: int
    taken: dict[str, Mapping[str, float]] = field(default_factory=dict)
    profiles: dict[str, tuple[float, Sequence[tuple[str, float, float]]]] = field(default_factory=dict)
    again: dict[str, str] = field(default_factory=dict)

    def apart(self, case: str) -> float:
        """Return how far the two measurements of the same code are apart, of the lesser one."""
        one, other = self.taken[case]["main"], self.taken[case]["again"]
        return max(one, other) / min(one, other) - 1

    def slower_here(self) -> float:
        """Return how many times as long the bare loops take here as where the targets were set."""
        bare = {case: found["bare"] for case, found in self.taken.items() if "bare" in found}
        return median(micros / FLOORS[MESSAGE[case]["floor"]] for case, micros in bare.items())

    def counted(self, case: str) -> float:
        """Return the µs that its target is of: of some only what they take more than another case."""
        beyond = MESSAGE[case].get("beyond")
        return self.taken[case]["main"] - (self.taken[beyond]["main"] if beyond in self.taken else 0.0)

    def reached(self, case: str) -> bool | None:
        """Return True: its target is; None: there is none, or what it is of is not a measurement."""
        target, needed = MESSAGE[case].get("target"), (case, MESSAGE[case].get("beyond"))
        if target is None or any(self.apart(each) > APART for each in needed if each in self.taken):
            return None
        return bool(self.counted(case) <= target * self.slower_here())

    def slow(self) -> Iterator[tuple[str, str, bool]]:
        """Yield title, case, and whether it is asyncio's, of all that takes too long, or may."""
        cases = [case for case in MESSAGE if case in self.taken]
        for case in cases:
            if self.reached(case) is False or self.apart(case) > APART:
                yield MESSAGE[case]["title"], case, False
        for case in cases:
            if self.taken[case].get("asyncio", 0) > LOOP_LIMIT * self.taken[case]["main"]:
                yield f"{MESSAGE[case]['title']}, asyncio", case, True


def micros(case: str) -> dict[str, float]:
    """Return the least µs of each way to run it, and by what part the median of the first is above it."""
    ways = {"main": case, "thread": case, "again": case}
    ways |= {"asyncio": case} if case in IN_LOOP else {}
    ways |= {"bare": MESSAGE[case]["floor"]} if "floor" in MESSAGE[case] else {}
    found: dict[str, list[float]] = {how: [] for how in ways}
    for _ in range(ROUNDS):
        for how, what in ways.items():
            found[how] += in_process(f"acting.measure({what!r}, {MESSAGES}, {how.replace('again', 'main')!r})")
    spread = median(found["main"]) / min(found["main"]) - 1
    return {"spread": spread, **{how: min(each) for how, each in found.items()}}


def verdict(record: Record, case: str) -> str:
    """Return a word for a reader."""
    if record.apart(case) > APART:
        return f"not a measurement: main thread and again are {record.apart(case):.0%} apart"
    more = f" (+{record.counted(case):.1f})" if "beyond" in MESSAGE[case] else ""
    return {None: "", True: f"yes{more}", False: f"**no**{more}"}[record.reached(case)]


def cells(record: Record, case: str) -> tuple[str, ...]:
    """Return the row of a case."""
    found, row = record.taken[case], MESSAGE[case]
    target, plus = row.get("target"), "+" if "beyond" in row else ""
    loop = (
        [f"{found['asyncio']:.1f}", f"{found['asyncio'] / record.taken[case]['main']:.2f}"]
        if "asyncio" in found
        else ["", ""]
    )
    return (
        row["title"],
        *(f"{found[how]:.1f}" for how in ("main", "again")),
        f"{found['spread']:.0%}",
        f"{found['thread']:.1f}",
        *loop,
        f"{found['bare']:.1f}" if "bare" in found else "",
        *(["", ""] if target is None else [f"{plus}{target:g}", f"{plus}{target * record.slower_here():.1f}"]),
        verdict(record, case),
    )


def page(record: Record) -> str:
    """Return the whole page, in Markdown."""
    texts = TEXT["cpu"]
    cases = [case for case in MESSAGE if case in record.taken]
    text = texts["introduction"] + (
        " " + texts["in_thread"] if any(case.endswith("-in-thread") for case in cases) else ""
    )
    numbers = {"rounds": record.rounds, "messages": record.messages, "slower": record.slower_here(), "apart": APART}
    lines = ["# Processor time of a message", "", "Written by `python -m benchmarks.cpu_page`. Do not edit.", ""]
    lines += [*paragraphs(text, **numbers), f"Machine: {written(record.machine)}.", ""]
    later = ", ".join(f"{case} ({date})" for case, date in record.again.items())
    if later:
        again = "Measured again later, so that these numbers are of another run than the others"
        lines += [f"{again}: {later}.", ""]
    lines += table(HEADS, [cells(record, case) for case in cases])
    slow = [each for each in record.slow() if each[0] in record.profiles]
    if slow:
        lines += ["", "## Where the time goes", "", *paragraphs(texts["where"])]
        lines += [why(record, *each) for each in record.slow()]
        rows = []
        for title, *_ in slow:
            calls, functions = record.profiles[title]
            cell = ", ".join(f"`{name}` {share:.0%} ({count:.1f})" for name, count, share in functions)
            rows.append((title, f"{calls:.0f}", cell))
        lines += ["", *table(("case", "calls", "functions"), rows)]
    return "\n".join([*lines, "", "## Left out", "", *paragraphs(texts["left_out"])])


def why(record: Record, title: str, case: str, loop: bool) -> str:
    """Return the sentence of one that takes too long."""
    reason = "turn" if case in ANSWERED else "loop"
    text = WHY[reason] if loop else WHY.get(case.removesuffix("-in-thread"), UNKNOWN)
    found = record.taken[case]
    if "bare" in found and not loop:
        text += f" (the bare loop takes {found['bare'] / found['main']:.0%} of the time)"
    return item(f"{title}: {text}")


def begin(found: Any, only: Sequence[str]) -> Any:
    """Return the numbers of a run that begins. Raises BenchmarkError: the machine is another one."""
    now = asdict(Record(facts(), MESSAGES, ROUNDS))
    if not only:
        return now
    check_same(*({**each["machine"], "messages": each["messages"], "rounds": each["rounds"]} for each in (found, now)))
    found["again"] |= dict.fromkeys(only, now["machine"][DATE])
    return found


def take(found: Any, case: str, _url: str) -> dict[str, float]:
    """Measure a case."""
    found["taken"][case] = its = micros(case)
    return its


def end(found: Any, only: Sequence[str]) -> None:
    """Measure the profiles that the page then shows of these cases."""
    from benchmarks import profiles  # the page itself is made without proton

    record = Record(**found)
    for title, case, loop in record.slow():
        if case in (only or MESSAGE):
            record.profiles[title] = profiles.take(case, record.messages // 4, loop=loop)


FIGURES: Final = Figures(
    "docs/cpu.json", "docs/cpu.md", list(MESSAGE), take, lambda found, _: page(Record(**found)), begin, end, urls=False
)

if __name__ == "__main__":
    FIGURES.main(__doc__)
