"""The cases over STOMP, against raw stomp.py."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from benchmarks import bare, ours, raw_stomp
from benchmarks.cases import OURS, Case, Contender, JavaRun, Run
from redelivery import AckMode

RAW: Final = "raw stomp.py"
NODELAY: Final = f"{RAW}, NODELAY by hand"
PEER, CLASSIC = "stomp/fake", "stomp/activemq"


def cases() -> tuple[Case, ...]:
    """In the order of the table."""
    each: Run = partial(raw_stomp.consume, ack="client-individual")
    at_once: Run = partial(raw_stomp.consume, ack="auto")
    return (
        _consuming(
            "auto",
            "AUTO",
            AckMode.AUTO,
            Contender(f"{RAW}, ACK each", each, {PEER: 3.3, CLASSIC: 1.3}, cpu_targets={PEER: 4}),
            Contender(f"{RAW}, ack:auto", at_once, acks=False, remark="acknowledges nothing: a crash loses messages"),
            bare.beside(partial(bare.consume, each=True)),
        ),
        _consuming(
            "individual",
            "INDIVIDUAL, acknowledge() each",
            AckMode.INDIVIDUAL,
            Contender(f"{RAW}, ACK each", each, {PEER: 5}, cpu_targets={PEER: 5.5}),
            bare.beside(bare.consume),
        ),
        _consuming(
            "dups-ok",
            "DUPS_OK",
            AckMode.DUPS_OK,
            Contender(f"{RAW}, ack:auto", at_once, {PEER: 4}, acks=False, cpu_targets={PEER: 4.5}),
            bare.beside(partial(bare.consume, acks=False), acks=False),
        ),
        _transacted("commit-1", "TRANSACTED, commit each", 1, {PEER: 3}, {CLASSIC: 15}),
        _transacted("commit-10", "TRANSACTED, commit every 10", 10, {PEER: 6}, {}),
        _transacted("commit-100", "TRANSACTED, commit every 100", 100, {PEER: 6.5}, {}),
        _sending("send", "send, persistent, one by one", 1, {}, {}),
        _sending("send-100", "send_async, persistent, window 100", 100, {PEER: 2.5}, {PEER: 3.5}),
    )


def _consuming(key: str, title: str, mode: AckMode, *rivals: Contender, batch: int = 0) -> Case:
    mine = Contender(OURS, partial(ours.consume, mode=mode, batch=batch))
    small = {"hornetq": f"its window is 10 KiB, and {batch} messages of 1 KiB are more"}
    cannot = small if batch > 1 else {}
    return Case(key, title, (mine, *rivals), JavaRun(mode=int(mode), batch=batch), batch=max(1, batch), cannot=cannot)


def _transacted(
    key: str, title: str, batch: int, by_hand: Mapping[str, float], documented: Mapping[str, float]
) -> Case:
    nodelay: Run = partial(raw_stomp.consume_transacted, batch=batch, nodelay=True)
    slow: Run = partial(raw_stomp.consume_transacted, batch=batch, nodelay=False)
    rivals = (
        Contender(NODELAY, nodelay, by_hand, first=20),
        Contender(RAW, slow, documented, first=20, remark="waits for Nagle's algorithm"),
        bare.beside(partial(bare.commit, batch=batch)),
    )
    return _consuming(key, title, AckMode.TRANSACTED, *rivals, batch=batch)


def _sending(key: str, title: str, window: int, targets: Mapping[str, float], cpu_targets: Mapping[str, float]) -> Case:
    mine = Contender(OURS, partial(ours.send, window=window))
    raw = Contender(RAW, partial(raw_stomp.send, window=window), targets, cpu_targets=cpu_targets)
    return Case(
        key, title, (mine, raw, bare.beside(partial(bare.send, window=window))), JavaRun(window=window), sends=True
    )
