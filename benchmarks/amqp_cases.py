"""The cases over AMQP 1.0, against raw proton."""

from __future__ import annotations

from functools import partial
from typing import Final

from benchmarks import bare_amqp, ours, raw_proton
from benchmarks.bare import beside
from benchmarks.cases import OURS, Case, Contender, JavaRun, Run
from redelivery import AckMode

CONTAINER: Final = "raw proton, Container"
PEER, CLASSIC, ARTEMIS = "amqp/fake", "amqp/activemq", "amqp/artemis"
NO_TRANSACTIONS: Final = {"rabbitmq": "its AMQP 1.0 has no transactions"}


def cases() -> tuple[Case, ...]:
    """In the order of the table."""
    return (
        _consuming("auto", "AUTO", AckMode.AUTO, {PEER: 4, ARTEMIS: 3}, each=True),
        Case(
            "unread",
            "AUTO, nothing of the message is read",
            (
                Contender(OURS, partial(ours.consume, mode=AckMode.AUTO, read=False)),
                Contender(CONTAINER, partial(raw_proton.consume, read=False), {PEER: 6}),
                beside(partial(bare_amqp.consume, each=True, read=False)),
            ),
            None,
            brokers=frozenset(("fake",)),
        ),
        _consuming("individual", "INDIVIDUAL, acknowledge() each", AckMode.INDIVIDUAL, {}),
        _consuming("dups-ok", "DUPS_OK", AckMode.DUPS_OK, {}),
        _transacted("commit-1", "TRANSACTED, commit each", 1, 4),
        _transacted("commit-100", "TRANSACTED, commit every 100", 100, 8),
        Case(
            "send",
            "send, persistent, one by one",
            (
                Contender(OURS, partial(ours.send, window=1)),
                Contender("raw proton, BlockingConnection", raw_proton.send_blocking, {PEER: 1.4}),
                beside(partial(bare_amqp.send, window=1)),
            ),
            JavaRun(window=1),
            sends=True,
        ),
        Case(
            "send-500",
            "send_async, persistent, window 500",
            (
                Contender(OURS, partial(ours.send, window=500)),
                Contender(CONTAINER, partial(raw_proton.send, window=500), {PEER: 4}),
                beside(partial(bare_amqp.send, window=500)),
            ),
            JavaRun(window=500),
            sends=True,
        ),
    )


def _consuming(key: str, title: str, mode: AckMode, targets: dict[str, float], *, each: bool = False) -> Case:
    mine = Contender(OURS, partial(ours.consume, mode=mode))
    raw = Contender(CONTAINER, raw_proton.consume, targets)
    return Case(key, title, (mine, raw, beside(partial(bare_amqp.consume, each=each))), JavaRun(mode=int(mode)))


def _transacted(key: str, title: str, batch: int, target: float) -> Case:
    mine = Contender(OURS, partial(ours.consume, mode=AckMode.TRANSACTED, batch=batch))
    run: Run = partial(raw_proton.consume_transacted, batch=batch)
    raw = Contender("raw proton, Transaction", run, {CLASSIC: target, ARTEMIS: target}, first=50)
    java = JavaRun(mode=int(AckMode.TRANSACTED), batch=batch)
    limit = beside(partial(bare_amqp.commit, batch=batch))
    return Case(key, title, (mine, raw, limit), java, batch=batch, cannot=NO_TRANSACTIONS)
