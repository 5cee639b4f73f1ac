"""What became of each message, from what the killed programs said themselves and from what stands on the queues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Killed = Literal["client", "broker"]

# How one delivery ended. "open": at a kill, or when the connection was lost. "in doubt": a commit that had begun then,
# or raised InDoubtError. "recent": committed, but shortly before a kill; see `Promise.behind`.
OPEN, ROLLED_BACK, IN_DOUBT, COMMITTED, RECENT = "open", "rolled back", "in doubt", "committed", "recent"


@dataclass(frozen=True, slots=True)
class Promise:
    """What a pair promises, as its documentation and its broker's say.

    ``window``: why an in-doubt end can leave a message's output there and bring the message again; None: it cannot.
    ``behind``: why what was committed in the last ``seconds`` before a kill can be redelivered; None: it cannot;
    ``behind_when``: before which kills. ``marked_when``: after which kills all that is redelivered says so.
    ``hides``: why the broker may deliver a message no more until it is started again; None: it always does.
    ``young``: seconds for which a kill of the broker may take a queue that has just been made, with all that it holds.
    """

    text: str
    window: str | None = None
    behind: str | None = None
    behind_when: tuple[Killed, ...] = ()
    marked_when: tuple[Killed, ...] = ()
    seconds: float = 5.0
    hides: str | None = None
    young: float = 0.0


@dataclass
class Account:
    """One pair's, for all messages of a run."""

    promise: Promise
    killed: Killed
    fates: dict[str, list[str]] = field(default_factory=dict)
    unmarked: list[str] = field(default_factory=list)
    _seen: set[str] = field(default_factory=set)

    def read(self, lines: Iterable[str]) -> None:
        """All that one program said, up to its kill or its end."""
        batch: list[str] = []
        ended: list[tuple[list[str], str, float]] = []
        fate, now = OPEN, 0.0
        for line in lines:
            time, verb, *words = line.split()
            now = float(time)
            if verb == "got":
                body, count = words
                batch.append(body)
                if body in self._seen and count == "1":
                    self.unmarked.append(body)
                self._seen.add(body)
            elif verb == "commit":
                fate = IN_DOUBT
            elif verb in _ENDS:
                ended.append((batch, _ENDS[verb], now))
                batch, fate = [], OPEN
            elif verb == "lost":
                self._add([*ended, (batch, fate, now)], killed=now)
                batch, ended, fate = [], [], OPEN
        self._add([*ended, (batch, fate, now)], killed=now)

    def verdict(self, sent: Sequence[str], moved: Mapping[str, int]) -> Verdict:
        """``sent``: what was there to be moved; ``moved``: how often each stands on the target."""
        verdict = Verdict(messages=len(sent), unmarked=len(self.unmarked))
        if self.killed in self.promise.marked_when:
            verdict.unexplained += [f"{body} was redelivered as if for the first time" for body in self.unmarked]
        known = set(sent)
        for fates in self.fates.values():
            verdict.fates.update(fates)
        for body in sent:
            self._judge(body, self.fates.get(body, []), moved.get(body, 0), verdict)
        verdict.unexplained += [
            f"{body} was never sent" for body in moved.keys() | self.fates.keys() if body not in known
        ]
        return verdict

    def _add(self, ended: Iterable[tuple[list[str], str, float]], killed: float) -> None:
        behind = self.promise.seconds if self.killed in self.promise.behind_when else -1.0
        for bodies, fate, when in ended:
            for body in bodies:
                recent = fate == COMMITTED and killed - when <= behind
                self.fates.setdefault(body, []).append(RECENT if recent else fate)

    def _judge(self, body: str, fates: list[str], outputs: int, verdict: Verdict) -> None:
        def wrong(what: str) -> None:
            verdict.unexplained.append(f"{body} {what}; its deliveries: {', '.join(fates) or 'none'}")

        if outputs == 0:
            verdict.lost.append(f"{body}; its deliveries: {', '.join(fates) or 'none'}")
            return
        if COMMITTED in fates[:-1]:
            wrong("was redelivered after its commit")
        counts = Counter(fates)
        if outputs > counts[COMMITTED] + counts[RECENT] + counts[IN_DOUBT]:
            wrong(f"stands {outputs} times on the target")
            return
        for _ in range(outputs - 1):
            if RECENT in fates[:-1] and self.promise.behind:
                verdict.duplicates[self.promise.behind] += 1
            elif counts[IN_DOUBT] and self.promise.window:
                verdict.duplicates[self.promise.window] += 1
            else:
                wrong("stands twice on the target")


@dataclass
class Verdict:
    """The sums.

    ``unmarked``: deliveries after a message's first that said they were the first. ``fates``: of deliveries.
    ``duplicates``: how many further outputs, by explanation. ``hidden``: that came only when the broker was restarted.
    """

    messages: int
    unmarked: int = 0
    hidden: int = 0
    fates: Counter[str] = field(default_factory=Counter)
    duplicates: Counter[str] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    unexplained: list[str] = field(default_factory=list)


_ENDS = {"committed": COMMITTED, "rolled-back": ROLLED_BACK, "in-doubt": IN_DOUBT}
