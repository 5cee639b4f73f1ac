"""The account itself: a loss and a duplicate without a reason are found, and nothing else."""

from __future__ import annotations

import pytest
from tests.faults.account import Account, Killed, Promise, Verdict

ATOMIC = Promise("one transaction", marked_when=("client",))
LATER = Promise("ACKs later", window="between", behind="written behind", behind_when=("broker",), seconds=2)


def judge(promise: Promise, moved: dict[str, int], *lives: str, killed: Killed = "client") -> Verdict:
    """Each life is what one program said, separated by commas; a number before it is its time."""
    account = Account(promise, killed)
    for life in lives:
        lines = [line.strip() for line in life.split(",")]
        account.read(line if line[0].isdigit() else f"0 {line}" for line in lines)
    return account.verdict(["a", "b"], moved)


def test_each_moved_once_with_its_kills_is_in_order() -> None:
    verdict = judge(
        ATOMIC,
        {"a": 1, "b": 1},
        "got a 1, rolled-back, got a 2, got b 1, commit",
        "got a 2, commit, committed, got b 2",
        "got b 2, commit, in-doubt, end",
    )
    assert (verdict.lost, verdict.unexplained, verdict.duplicates) == ([], [], {})
    assert verdict.fates == {"rolled back": 1, "in doubt": 3, "committed": 1, "open": 1}


def test_what_is_nowhere_is_lost() -> None:
    verdict = judge(ATOMIC, {"a": 1}, "got a 1, commit, committed, got b 1, commit, committed, end")
    assert [entry.split(";")[0] for entry in verdict.lost] == ["b"]


@pytest.mark.parametrize(
    ("moved", "life"),
    [
        ({"a": 2, "b": 1}, "got a 1, got b 1, commit, committed, end"),  # one commit, two outputs
        ({"a": 1, "b": 1}, "got a 1, got b 1, commit, committed, got a 2, rolled-back, end"),  # again after its commit
        ({"a": 1, "b": 1}, "got a 1, got b 1, rolled-back, end"),  # an output that nobody committed
        ({"a": 1, "b": 1, "c": 1}, "got a 1, got b 1, commit, committed, end"),  # never sent
        ({"a": 1, "b": 1}, "got a 1, rolled-back, got a 1, got b 1, commit, committed, end"),  # not marked
    ],
)
def test_what_no_promise_allows_is_not_explained(moved: dict[str, int], life: str) -> None:
    verdict = judge(ATOMIC, moved, life)
    assert verdict.unexplained
    assert verdict.lost == []


def test_a_second_output_after_a_commit_in_doubt_is_explained_where_acks_come_later() -> None:
    lives = ("got a 1, got b 1, commit", "got a 2, commit, committed, end")
    assert judge(LATER, {"a": 2, "b": 1}, *lives).duplicates == {"between": 1}
    assert judge(LATER, {"a": 2, "b": 1}, *lives).unexplained == []
    assert judge(ATOMIC, {"a": 2, "b": 1}, *lives).unexplained


def test_a_second_output_after_a_commit_is_explained_only_shortly_before_the_kill_of_a_broker() -> None:
    def life(lost: int) -> str:
        return f"1 got a 1, 1 got b 1, 1 commit, 1 committed, {lost} lost, 9 got a 1, 9 commit, 9 committed, 9 end"

    assert judge(LATER, {"a": 2, "b": 1}, life(2), killed="broker").duplicates == {"written behind": 1}
    assert judge(LATER, {"a": 2, "b": 1}, life(8), killed="broker").unexplained
    assert judge(LATER, {"a": 2, "b": 1}, life(2), killed="client").unexplained
