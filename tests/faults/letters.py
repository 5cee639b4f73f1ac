"""Commands of `redelivery dlq` are killed, gone on with, and killed again; then every letter is looked for.

A run is one command on one pair. Each round has queues of its own, with letters of this library and of others, some
with the same content, with the same id or without one. Its command is killed at a random moment or at a planted point
(see `letters_victim`), and so is what goes on with it; one that nobody kills does the rest.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from uuid import uuid4

from tests.conformance.foreign import Foreign, binary, section, string
from tests.faults import letters_victim
from tests.faults import letters_victim as victim
from tests.faults.letters_victim import COUNT, MOMENT, POINTS, Ended, Struck

import redelivery
from redelivery import Message
from redelivery.operate.letters.folding import failure
from redelivery.operate.letters.groups import group
from redelivery.operate.letters.routes import MARKS
from redelivery.operate.letters.selection import Selection
from redelivery.operate.management.browsing import browsed
from redelivery.policies.dead_letter_headers import is_broker_owned

UNDO, UNPURGE, GROUP = "undo", "undo of a purge", "replay --group"
COMMANDS: Final = ("replay", GROUP, "edit", "move", "import", "purge", UNDO, UNPURGE)
LETTERS: Final = 120  # of a round, and a few of others: three transactions
_TRIES: Final = 60
_AGAIN: Final = 0.4  # how often what goes on with a run is killed, too
_FIX: Final = "def fix(letter):\n    letter['properties']['fixed'] = 'yes'\n    return letter\n"
_CAUSE: Final = "Delivery[1] exceeds redelivery policy limit:RedeliveryPolicy, cause:{}"
_CAUSES: Final = ("LookupError: no such article", "TimeoutError: bank")


@dataclass
class LetterSite:
    """A broker by one protocol.

    ``environment``: what its commands need beside the URL. ``lasting``: letters of others outlive the broker's process.
    """

    name: str
    url: str
    environment: dict[str, str] = field(default_factory=dict)
    lasting: bool = False

    @property
    def protocol(self) -> str:
        return self.name.partition("-")[0]

    @property
    def managed(self) -> bool:
        """Whether its queues are looked into by its management, which shows all bodies as bytes."""
        return "rabbitmq" in self.name

    @property
    def transacted(self) -> bool:
        """Whether each letter is sent and removed in one transaction; by ids only where a browser has selectors."""
        return not self.managed and self.name != "stomp-artemis"

    def connect(self) -> redelivery.Connection:
        return redelivery.connect(self.url, management=self.environment.get("REDELIVERY_MANAGEMENT"))

    def send_foreign(self, queue: str) -> None:
        """Letters of another client: over AMQP two of the same id, and two that are equal and have none."""
        foreign = Foreign(self.protocol, self.name.partition("-")[2].replace("stored", "embedded"), self.url)
        if self.protocol == "stomp":
            body = b"\nraw" if self.managed else b"content-length:3\n\n\0\xff\0"  # which it shows as str
            head = b"persistent:true\n" if self.lasting else b""
            foreign.send(queue, *(head + each for each in (b"\nraw", b"\nraw", body)))
            return
        head = section(0x70, b"\xc0\x02\x01\x41") if self.lasting else b""
        named = head + section(0x73, b"\xc0" + bytes([9, 1]) + b"\xa1\x06" + b"one-id")
        foreign.send(queue, *(named + section(0x75, binary(b"twin %d" % n)) for n in range(2)))
        if not self.managed:  # a management shows other bodies than an AMQP client gets, so that none is found again
            foreign.send(queue, *(head + section(0x77, string(b"nameless")) for _ in range(2)))


@dataclass
class LetterRun:
    """What one command on one pair has come to. ``at``: how often it was killed at which point."""

    site: LetterSite
    command: str
    folder: Path
    chance: random.Random
    kills: int = 0
    letters: int = 0
    lost: int = 0
    doubled: int = 0
    at: Counter[str] = field(default_factory=Counter)
    seen: dict[str, float] = field(default_factory=dict)  # how often each point is reached where nothing is killed

    def play(self, kills: int) -> None:
        """Rounds until so many were killed."""
        with self.site.connect() as connection:
            if kills > 1:
                self._round(LetterRound(self, connection), 0)
            while self.kills < kills:
                self._round(LetterRound(self, connection), kills)

    def _round(self, place: LetterRound, kills: int) -> None:
        place.prepare()
        command, tries = place.command(), 0
        while True:
            kill = self.kills < kills and (not tries or self.chance.random() < _AGAIN)
            point, number = self._moment() if kill else (COUNT, 0.0)
            done = place.run(command, point, number)
            tries += 1
            if done.code == -9:
                self.kills += 1
                self.at[point] += 1
                place.verify()
                command = place.going_on()
            elif tries > 1 and "try again in a few seconds" in done.errors and tries < _TRIES:
                time.sleep(0.2)  # until the broker has seen that its client is gone
            elif "run it again" in done.errors:  # it was killed within the first line of its receipt
                command = place.command()
            elif "cannot be put back now" in done.errors and tries < _TRIES:
                time.sleep(0.2)  # as above, or the broker did not show all
            elif done.code == 0 or (tries > 1 and "nothing is left" in done.errors):
                break
            else:
                raise AssertionError((command, point, number, done))
        if not kills:
            self.seen = json.loads(done.errors.splitlines()[-1])
        place.verify(ended=True)
        lost, doubled = place.balance()
        self.letters += place.count
        self.lost += lost
        self.doubled += doubled

    def _moment(self) -> tuple[str, float]:
        seen = self.seen or {victim.LINE: 4, MOMENT: 0.5}
        points = [each for each in POINTS if each in seen and each != MOMENT]
        if self.chance.random() < 0.4:
            return MOMENT, self.chance.uniform(0, seen[MOMENT])
        point = self.chance.choice(points)
        return point, float(self.chance.randint(1, int(seen[point])))


class LetterRound:
    """The queues of one round, what was on them, and what must be."""

    def __init__(self, run: LetterRun, connection: redelivery.Connection) -> None:
        self._site, self._kind, self._connection = run.site, run.command, connection
        self._source = f"kills.{uuid4().hex[:12]}"
        self._target = f"{self._source}.to"
        self._folder = run.folder / self._source
        self._folder.mkdir(parents=True)
        self._receipts = self._folder / "receipts"
        self._meant: list[Message] = []
        self._others: list[Message] = []
        self._group = ""

    @property
    def count(self) -> int:
        """How many letters there are."""
        return len(self._meant) + len(self._others)

    def prepare(self) -> None:
        """Fill the queue of letters, and do what is done before the command that is killed."""
        self._fill()
        self._meant = list(browsed(self._connection, redelivery.Queue(self._source)))
        if self._kind == GROUP:
            self._group = group(self._meant)[0].fingerprint
            chosen = Selection(redelivery.Queue(self._source), group=self._group).on(self._connection)
            self._others = [each for each in self._meant if not chosen.accepts(each)]
            self._meant = [each for each in self._meant if chosen.accepts(each)]
            assert self._others
        if self._kind == "import":
            self.run(("export", self._source, "--yes", "--output", self._file), check=True)
        elif self._kind == UNDO:
            self.run(self._replay(), check=True)
        elif self._kind == UNPURGE:
            self.run(self._purge(), check=True)

    def command(self) -> Sequence[str]:
        """The arguments of the command that is killed."""
        match self._kind:
            case "edit":
                fix = self._folder / "fix.py"
                fix.write_text(_FIX)
                return ("edit", self._source, "--limit", "9999", "--with", str(fix), "--to", self._target, "--yes")
            case "move":
                return ("move", self._source, "--to", self._target, "--yes")
            case "import":
                return ("import", self._target, self._file)
            case "purge":
                return self._purge()
            case "undo" | "undo of a purge":
                return ("undo", str(self._receipt()), "--yes")
        return self._replay()

    def going_on(self) -> Sequence[str]:
        """The arguments of the command that goes on with it; the same again where nothing was begun."""
        receipt = self._receipt()
        if receipt is None:
            return self.command()
        return ("undo" if self._kind.startswith(UNDO) else "resume", str(receipt), "--yes")

    def verify(self, *, ended: bool = False) -> None:
        """The receipt holds."""
        receipt = self._receipt()
        if receipt is None:
            return
        said = json.loads(self.run(("verify", str(receipt), "--json", "--yes"), check=self._site.transacted).output)
        if not ended:
            return
        number = len(self._meant)
        name = {"purge": "gone", UNDO: "undone", UNPURGE: "undone"}.get(self._kind, "unread")
        if self._site.transacted:
            wrong = [each for each in ("still", "left", "returned", "doubled") if said[each]]
            assert not wrong, said
            assert said[name] == said["letters"] == number, (said, number)
        else:
            assert not said["left"], said

    def balance(self) -> tuple[int, int]:
        """How many letters are lost, and how many are there once more, whatever a receipt says."""
        gone = self._kind in ("purge", UNDO, UNPURGE)
        stay = [] if self._kind not in ("import", UNDO, UNPURGE) else self._meant
        failed = self._kind in ("move", "import")
        fixed = self._kind == "edit"
        expected = {
            self._source: Counter(_written(each) for each in (*stay, *self._others)),
            self._target: Counter(_written(each, failed=failed, fixed=fixed) for each in (() if gone else self._meant)),
        }
        lost = doubled = 0
        for queue, wanted in expected.items():
            found = Counter(map(_written, self._take(queue, wanted.total())))
            lost += (wanted - found).total()
            doubled += (found - wanted).total()
        return lost, doubled

    def close(self) -> None:
        """Close the connection by which it looks."""
        self._connection.close()

    def look_again(self) -> None:
        """By another connection: the broker was ended, and started again."""
        self.close()
        self._connection = self._site.connect()

    def run(
        self,
        arguments: Sequence[str],
        point: str = COUNT,
        number: float = 0.0,
        struck: Struck | None = None,
        *,
        check: bool = False,
    ) -> Ended:
        """A command, killed at that point; or what is ``struck`` there."""
        environment = {**self._site.environment, "REDELIVERY_URL": self._site.url}
        environment["REDELIVERY_RECEIPTS"] = str(self._receipts)
        done = letters_victim.run(arguments, environment, point, number, struck)
        assert not check or done.code == 0, (arguments, done)
        return done

    def _fill(self) -> None:
        mode = "transacted" if self._connection.metadata.capabilities.transactions else "auto"
        with self._connection.session(mode) as session:
            producer = session.producer(self._source)
            for number in range(LETTERS):
                cause = _CAUSE.format(_CAUSES[number % 3 == 0])
                said = {"originalDestination": f"queue://{self._target}", "dlqDeliveryFailureCause": cause}
                bodies = ("the same", b"\0\xff%d" % number)
                body = bodies[number % 10] if number % 10 < len(bodies) else f"order {number}"
                producer.send(body, properties={**said, "tenant": "eü"})
            if mode == "transacted":
                session.commit()
        self._site.send_foreign(self._source)

    @property
    def _file(self) -> str:
        return str(self._folder / "letters.jsonl")

    def _replay(self) -> Sequence[str]:
        chosen = ("--group", self._group) if self._group else ()
        return ("replay", self._source, "--to", self._target, "--yes", *chosen)

    def _purge(self) -> Sequence[str]:
        return ("purge", self._source, "--keep", "--yes")

    def _receipt(self) -> Path | None:
        """The receipt of the command; None: it has not begun one."""
        found = [each for each in self._receipts.glob("*") if each.read_text(encoding="utf-8").count("\n")]
        return max(found, key=lambda each: each.stat().st_mtime_ns, default=None)

    def _take(self, queue: str, count: int) -> Iterator[Message]:
        """What is there: so many, or what comes in time; and what is more."""
        with self._connection.session() as session:
            consumer = session.consumer(redelivery.Queue(queue))
            while (message := consumer.receive(timeout=10 if count > 0 else 0.3)) is not None:
                yield message
                count -= 1


def _written(letter: Message, *, failed: bool = True, fixed: bool = False) -> str:
    """What a letter says: its body, what its sender wrote beside it and, where it has ``failed``, of what."""
    own = {
        name: str(value) for name, value in letter.properties.items() if not is_broker_owned(name) and name not in MARKS
    }
    if fixed:
        own["fixed"] = "yes"
    why = letter.dead_letter if failed else None
    said = None if why is None else (str(why.origin), failure(letter).text)
    return repr((letter.raw_body, sorted(own.items()), letter.type, said))
