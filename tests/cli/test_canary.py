"""`redelivery dlq replay --canary`: the rest follows only when the first letters have been handled."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from time import sleep
from typing import Any
from uuid import uuid4

import pytest
import typer
from tests.cli.brokers import HIDDEN, LOOKED_AT, bodies, fail, run, url
from tests.client.shell import eventually

import redelivery
from redelivery import Message, Queue, RedeliveryPolicy, SharedDeadLetterStrategy
from redelivery.cli.parts.target import outcome
from redelivery.model.content.dead_letters import DeadLetterInfo
from redelivery.operate.letters.canary import CanaryError, Watch, needed_by
from redelivery.operate.letters.replaying.planned import PlannedReplays
from redelivery.operate.letters.replaying.widening import Canary
from redelivery.operate.letters.routes import Leaving

__all__ = ["url"]

embedded = pytest.mark.parametrize("url", LOOKED_AT[:2], indirect=True)
looked_at = pytest.mark.parametrize("url", LOOKED_AT, indirect=True)
SLOW = RedeliveryPolicy(maximum_redeliveries=1, initial_redelivery_delay=1.0)


@pytest.fixture
def names() -> tuple[str, str]:
    return f"canary.{uuid4().hex}", f"canary.{uuid4().hex}.DLQ"


def worker(url: str, names: tuple[str, str], handler: Any, policy: RedeliveryPolicy = SLOW) -> Any:
    strategy = SharedDeadLetterStrategy(names[1])
    connection = redelivery.connect(url, redelivery_policy=policy, dead_letter_strategy=strategy)
    connection.listener_container(names[0], handler, ack_mode="client").start()
    return connection


@looked_at
def test_the_rest_follows_when_the_canaries_have_been_handled(url: str, names: tuple[str, str]) -> None:
    fail(url, *names, *[ValueError("x")] * 4)
    handled: list[Any] = []
    with worker(url, names, lambda message: handled.append(message.body)):
        done = run(url, "dlq", "replay", names[1], "--canary", "2", "--canary-wait", "2", "--yes")
        eventually(lambda: len(handled) == 4)  # a connection that is closed releases what is being handled
        sleep(0.1)
    assert done.stdout == "4 replayed\n"
    assert sorted(handled + bodies(url, names[0])) == ["0", "1", "2", "3"]


@looked_at
def test_a_canary_that_fails_by_a_policy_with_delays_stops_it(url: str, names: tuple[str, str]) -> None:
    fail(url, *names, *[ValueError("x")] * 3, policy=SLOW)  # which they name: there is no --canary-wait

    def handler(message: Message) -> None:
        raise ValueError(message.body)

    with worker(url, names, handler):
        done = run(url, "dlq", "replay", names[1], "--canary", "1", "--yes", code=1)
    assert "1 of 1 came back within " in done.stderr
    assert "nothing else was replayed" in done.stderr
    assert done.stdout == ""
    assert sorted(bodies(url, names[1])) == ["0", "1", "2"]


@looked_at
def test_canaries_that_nobody_takes_stop_it(url: str, names: tuple[str, str]) -> None:
    fail(url, *names, *[ValueError("x")] * 3)
    done = run(url, "dlq", "replay", names[1], "--canary", "2", "--canary-wait", "0.3", "--yes", code=1)
    assert f"nobody took 2 of 2 within 0.3 s (2 on queue://{names[0]})" in done.stderr
    assert (bodies(url, names[0]), bodies(url, names[1])) == (["0", "1"], ["2"])


@pytest.mark.parametrize("url", ["stomp-embedded"], indirect=True)
def test_as_many_canaries_as_letters_are_watched_too(url: str, names: tuple[str, str]) -> None:
    fail(url, *names, ValueError("x"))
    done = run(url, "dlq", "replay", names[1], "--canary", "5", "--canary-wait", "0.1", "--yes", code=1)
    assert "nobody took 1 of 1" in done.stderr
    assert bodies(url, names[0]) == ["0"]
    fail(url, *names, ValueError("x"))
    done = run(url, "dlq", "replay", names[1], "--canary", "1", "--canary-wait", "0.1", "--yes", "--json", code=1)
    found = json.loads(done.stdout)
    assert [found[each] for each in ("letters", "stay", "dry_run", "skipped", "remain")] == [1, 0, False, 0, 0]
    with redelivery.connect(url) as connection, connection.session() as session:
        session.producer(names[1]).send("to a topic", properties={"originalDestination": "topic://news"})
    done = run(url, "dlq", "replay", names[1], "--canary", "1", "--yes", code=1)
    assert "topic://news cannot be looked at" in done.stderr
    assert bodies(url, names[1]) == ["to a topic"]


@pytest.mark.parametrize("url", HIDDEN, indirect=True)
def test_where_nobody_can_look_it_is_refused(
    url: str, names: tuple[str, str], request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    with redelivery.connect(url) as connection, connection.session() as session:
        session.producer(names[1]).send("x", properties={"originalDestination": f"queue://{names[0]}"})
    done = run(url, "dlq", "replay", names[1], "--canary", "1", "--yes", code=1)
    assert "lets nobody look into a queue over" in done.stderr
    if "rabbitmq" not in request.node.name:
        monkeypatch.setenv("REDELIVERY_MANAGEMENT", "http://127.0.0.1:1")
        known = "there is no management at" if "artemis" in request.node.name else "over HTTP is not known here"
        assert known in run(url, "browse", names[1], code=1).stderr
    assert bodies(url, names[1]) == ["x"]


@pytest.mark.parametrize(
    "arguments", [("--canary-wait", "5"), ("--canary", "1", "--canary-wait", "0"), ("--canary", "0")], ids=str
)
@pytest.mark.parametrize("url", ["stomp-embedded"], indirect=True)
def test_a_wait_without_effect_is_wrong_usage(url: str, names: tuple[str, str], arguments: tuple[str, ...]) -> None:
    run(url, "dlq", "replay", names[1], *arguments, "--yes", code=2)


@pytest.mark.parametrize("url", LOOKED_AT, indirect=True)
def test_it_widens_and_stops_at_the_first_that_is_back(url: str, names: tuple[str, str]) -> None:
    fail(url, *names, *[ValueError("odd")] * 14)
    handled: list[Any] = []

    def handler(message: Message) -> None:
        if message.body == "5":
            raise ValueError("odd")
        handled.append(message.body)

    with worker(url, names, handler, RedeliveryPolicy(maximum_redeliveries=0)):
        arguments = ("--canary", "1", "--canary-wait", "1.5", "--yes", "--json")
        done = run(url, "dlq", "replay", names[1], *arguments, code=1)
        eventually(lambda: len(handled) == 10)  # the first that is back ends the replay, not what was sent beside it
    assert "came back" in done.stderr
    assert "nothing else was replayed; 11 sent, 3 remaining; the first that is back: ValueError: odd, as before" in (
        done.stderr
    )
    found = json.loads(done.stdout)
    assert (found["letters"], found["remain"]) == (11, 3)
    assert sorted(handled, key=int) == ["0", "1", "2", "3", "4", *map(str, range(6, 11))]
    assert sorted(bodies(url, names[1]), key=int) == ["5", "11", "12", "13"]


@embedded
def test_a_run_that_was_killed_goes_on_in_its_stages(url: str, names: tuple[str, str], receipts: Path) -> None:
    fail(url, *names, *[ValueError("odd")] * 14)
    arguments = ("dlq", "replay", names[1], "--canary", "1", "--canary-wait", "1", "--yes")
    assert "nobody took 1 of 1 within 1 s" in run(url, *arguments, code=1).stderr  # as if it were killed here
    (receipt,) = receipts.iterdir()
    assert "nobody took 1 of 1" in run(url, "dlq", "resume", str(receipt), code=1).stderr
    assert len(bodies(url, names[0])) == 1
    handled: list[Any] = []
    with worker(url, names, lambda message: handled.append(message.body), RedeliveryPolicy(maximum_redeliveries=0)):
        done = run(url, "dlq", "resume", str(receipt))
        eventually(lambda: len(handled) == 13)
    assert done.stdout == "13 more\n"
    assert "1 canary sent" in done.stderr
    assert "11 canaries sent" in done.stderr
    assert sorted(handled, key=int) == [str(number) for number in range(1, 14)]


@embedded
def test_ctrl_c_while_canaries_are_watched_names_the_receipt(
    url: str, names: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    fail(url, *names, *[ValueError("odd")] * 3)
    monkeypatch.setattr(Watch, "until_handled", interrupted)
    said = run(url, "dlq", "replay", names[1], "--canary", "1", "--yes", code=130).stderr
    assert "redelivery dlq replay: at least 1 letter moved before; once the cause is fixed, " in said
    assert said.count("goes on") == 1


@pytest.mark.parametrize("answer", [KeyboardInterrupt, EOFError])
def test_ctrl_c_at_a_question_is_an_interrupt(answer: type[BaseException]) -> None:
    code = None
    try:
        with outcome("dlq replay"):
            try:
                raise answer
            except (KeyboardInterrupt, EOFError):
                raise typer.Abort from None  # as `typer.confirm` does
    except typer.Exit as end:
        code = end.exit_code
    except typer.Abort:
        code = 1  # as typer says it
    assert code == (130 if answer is KeyboardInterrupt else 1)


@pytest.mark.parametrize(
    ("first", "ends"), [(3, [3, 33, 333, 3333]), (1, [1, 11, 111]), (10, [10, 110]), (5000, [5000, 55000])]
)
def test_each_stage_is_ten_times_the_one_before(first: int, ends: list[int]) -> None:
    for before, end in zip([0, *ends], ends, strict=False):
        assert Canary(first).end(before + 1) == Canary(first).end(end) == end


def letter(cause: str | None) -> Message:
    class Letter(Message):
        dead_letter = DeadLetterInfo(None, cause)

    return Letter("x")


def needed(letters: Iterable[Message]) -> float:
    """What a replay of these needs, by the policies that their causes name."""
    noted = PlannedReplays()
    for each in letters:
        noted.note(each, Leaving(each, Queue("orders"), 4, True))
    return needed_by(each.policy for each in noted)


def test_a_letter_says_how_long_its_policy_needs() -> None:
    policy = RedeliveryPolicy(
        maximum_redeliveries=4,
        redelivery_delay=3,
        use_exponential_back_off=True,
        back_off_multiplier=3.0,
        use_collision_avoidance=True,
        collision_avoidance_percent=50,
    )
    ours = f"Delivery[5] exceeds redelivery policy limit:{policy}, cause:ValueError: x"
    most = 1 * 1 + 3 * 1.5 + 9 * 1.5**2 + 27 * 1.5**3
    assert needed([letter(ours)]) == pytest.approx(most + 5, abs=0.1)
    java = f"java.lang.Throwable: {ours.replace('null', 'queue://a')}"
    assert needed([letter(java)]) == needed([letter(ours)])
    for unknown in ("rejected", None, "RedeliveryPolicy {x = y}", ours.replace("= 4", "= -1")):
        assert needed([letter(unknown)]) == 60
    assert needed([letter(ours), letter(None)]) == needed([letter(ours)]) == pytest.approx(most + 5, abs=0.1)
    assert needed([letter(ours.replace("= 4", "= 2000000000"))]) == 86400


class Queues:
    """What a look finds, at each time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *looks: tuple[int, int]) -> None:
        self.now, self._looks, self._at = 0.0, looks, -1
        monkeypatch.setattr(Watch, "_here", self.here)
        self.watch = Watch(
            None,  # type: ignore[arg-type]  # it is not asked
            redelivery.Queue("dlq"),
            [redelivery.Queue("orders")] * 2,
            "run",
            2,
            10.0,
            clock=lambda: self.now,
            sleep=self.sleep,
        )

    def here(self, queue: redelivery.Queue, *, surely: bool) -> int:  # noqa: ARG002  # as `Watch._here`
        back, waiting = self._looks[min(self._at, len(self._looks) - 1)]
        return back if queue.name == "dlq" else waiting

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self._at = int(self.now)

    def outcome(self) -> str:
        self._at = 0
        try:
            self.watch.until_handled()
        except CanaryError as error:
            return str(error)
        return "handled"


def test_many_that_are_taken_one_after_the_other_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Queues(monkeypatch, *[(0, 2)] * 8, *[(0, 1)] * 8, (0, 0))
    assert slow.outcome() == "handled"
    again = Queues(monkeypatch, *[(0, 2), (0, 1)] * 20)  # one that is tried again and again is not progress
    assert "nobody took" in again.outcome()
    assert again.now == pytest.approx(11, abs=1.1)


def test_it_must_be_gone_for_as_long_as_its_policy_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    taken_late = Queues(monkeypatch, *[(0, 2)] * 6, (0, 1), (0, 0))
    assert taken_late.outcome() == "handled"
    assert taken_late.now == pytest.approx(17, abs=0.6)
    tried_again = Queues(monkeypatch, (0, 0), (0, 0), (0, 0), (0, 1), (0, 0))  # a broker shows it between two tries
    assert tried_again.outcome() == "handled"
    assert tried_again.now == pytest.approx(14, abs=0.6)
    late_back = Queues(monkeypatch, *[(0, 0)] * 9, (1, 0))
    assert late_back.outcome() == "1 of 2 came back within 9 s: nothing else was replayed"
    stays = Queues(monkeypatch, (0, 1))
    assert "nobody took 1 of 2 within 10 s (1 on queue://orders)" in stays.outcome()
    assert stays.now == pytest.approx(10, abs=0.6)
