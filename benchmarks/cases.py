"""Cases of the benchmarks: the contenders beside us in each, and how all of them run in turns."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from cProfile import Profile
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

from benchmarks import bare, bare_amqp, ours, raw_proton, raw_stomp
from benchmarks.machine import BenchmarkError, Spent
from benchmarks.places import FAKE, PAIRS, Place, key
from benchmarks.record import BARE, OURS, Timing

Run: TypeAlias = Callable[[Place, str, int], Spent]  # where, queue, messages: what they took
CASES: Final = {
    "stomp": ("auto", "individual", "dups-ok", "commit-1", "commit-10", "commit-100", "send", "send-100"),
    "amqp": ("auto", "unread", "individual", "dups-ok", "commit-1", "commit-100", "send", "send-500"),
}
RAW_STOMP, CONTAINER = "raw stomp.py", "raw proton, Container"
SECONDS: Final = {True: 1.0, False: 0.4}  # of one run, at a fake peer or a real broker
MOST: Final = {True: 60_000, False: 8_000}  # messages of one run: a queue must be filled first


@dataclass(frozen=True, slots=True)
class Contender:
    """One way to do a case.

    ``acks``: its acknowledgements are counted. ``first``: messages of the warm-up, from which the length of the other
    runs follows; at least so many. ``remark``: a warning to the reader. ``fake_only``: it runs at no real broker.
    """

    name: str
    run: Run
    acks: bool = True
    first: int = 500
    remark: str = ""
    fake_only: bool = False


def contenders(protocol: str, case: str) -> tuple[Contender, ...]:
    """Return all of a case that are no Java client, ours first."""
    mine = Contender(OURS, partial(ours.run, case=case))
    _, size = ours.mode_and_size(case)
    rivals = _over_stomp if protocol == "stomp" else _over_amqp
    return (mine, *rivals(case, size))


def _beside(run: Run, *, acks: bool = True) -> Contender:
    return Contender(BARE, run, acks=acks, remark="no client", fake_only=True)


def _over_stomp(case: str, size: int) -> Iterator[Contender]:
    if case.startswith("send"):
        yield Contender(RAW_STOMP, partial(raw_stomp.send, window=size or 1))
        yield _beside(partial(bare.send, window=size or 1))
    elif size:
        run = partial(raw_stomp.consume_transacted, batch=size)
        yield Contender(f"{RAW_STOMP}, NODELAY by hand", partial(run, nodelay=True), first=20)
        yield Contender(RAW_STOMP, partial(run, nodelay=False), first=20, remark="waits for Nagle's algorithm")
        yield _beside(partial(bare.run, batch=size))
    else:
        remark = "acknowledges nothing: a crash loses messages" if case == "auto" else ""
        automatic = Contender(
            f"{RAW_STOMP}, ack:auto", partial(raw_stomp.consume, ack="auto"), acks=False, remark=remark
        )
        if case != "dups-ok":
            yield Contender(f"{RAW_STOMP}, ACK each", raw_stomp.consume)
        if case != "individual":
            yield automatic
        ack = {"auto": bare.EACH, "individual": bare.TOGETHER, "dups-ok": bare.NONE}[case]
        yield _beside(partial(bare.run, ack=ack), acks=ack != bare.NONE)


def _over_amqp(case: str, size: int) -> Iterator[Contender]:
    if case == "send":
        yield Contender("raw proton, BlockingConnection", raw_proton.send_blocking)
        yield _beside(partial(bare_amqp.send, window=1))
    elif case.startswith("send"):
        yield Contender(CONTAINER, raw_proton.played(raw_proton.Send, window=size))
        yield _beside(partial(bare_amqp.send, window=size))
    elif size:
        run = raw_proton.played(raw_proton.ReceiveTransacted, batch=size)
        yield Contender("raw proton, Transaction", run, first=50)
        yield _beside(partial(bare_amqp.commit, batch=size))
    else:
        read, ack = case != "unread", bare.EACH if case in ("auto", "unread") else bare.TOGETHER
        yield Contender(CONTAINER, raw_proton.played(raw_proton.Receive, read=read))
        yield _beside(partial(bare_amqp.consume, ack=ack, read=read))


def cannot(protocol: str, broker: str, case: str) -> str | None:
    """Return why a case is not run there; None: it is."""
    _, size = ours.mode_and_size(case)
    if protocol == "amqp" and broker == "rabbitmq" and case.startswith("commit"):
        return "its AMQP 1.0 has no transactions"
    if broker == "hornetq" and case.startswith("commit") and size > 1:
        return f"its window is 10 KiB, and {size} messages of 1 KiB are more"
    return None


def names() -> Iterator[str]:
    """Yield ``protocol/broker/case`` of all that there are, those included that cannot be run."""
    for broker, protocols in ((FAKE, tuple(CASES)), *PAIRS):
        for protocol in protocols:
            yield from (f"{protocol}/{broker}/{case}" for case in CASES[protocol] if case != "unread" or broker == FAKE)


def compare(place: Place, case: str, rivals: Iterable[Contender], rounds: int, scale: float) -> dict[str, Timing]:
    """Run ours and each rival in turn, round after round, each about as long as the others."""
    fake = place.broker == FAKE
    mine, *_ = contenders(place.protocol, case)
    all_ = (mine, *(each for each in rivals if fake or not each.fake_only))
    least = {each.name: each.first * min(1.0, 4 * scale) for each in all_}
    counts = {name: whole(case, count) for name, count in least.items()}
    runs: dict[str, list[tuple[int, Spent]]] = {name: [] for name in counts}
    for number in range(rounds + 1):
        for contender in all_:
            name, count = contender.name, counts[contender.name]
            spent = once(place, case, contender, count)
            length = min(MOST[fake], count / spent.seconds * SECONDS[fake]) * scale
            counts[name] = whole(case, max(length, least[name]))
            if number:
                runs[name].append((count, spent))
    return {each.name: timing(runs[each.name], each.remark) for each in all_}


def timing(runs: list[tuple[int, Spent]], remark: str = "") -> Timing:
    """Return the medians of all rounds."""
    costs = [spent.cpu / count * 1e6 for count, spent in runs if spent.cpu is not None]
    rate = statistics.median(count / spent.seconds for count, spent in runs)
    return Timing(rate, statistics.median(costs) if costs else None, remark)


def whole(case: str, count: float) -> int:
    """Return the nearest number of messages that is a number of batches."""
    batch = ours.mode_and_size(case)[1] if case.startswith("commit") else 1
    return max(1, round(count / batch)) * batch


def once(place: Place, case: str, contender: Contender, count: int, profiler: Profile | None = None) -> Spent:
    """Run it once, and see whether it did its work. Raises BenchmarkError."""
    sends = case.startswith("send")
    queue = place.prepare(0 if sends else count)
    gc.collect()  # nobody pays for the garbage of the one before
    with profiler or nullcontext():
        spent = contender.run(place, queue, count)
    try:
        if sends:
            place.finish(queue, sent=count)
        else:
            place.finish(queue, acked=count if contender.acks else 0)
    except BenchmarkError as error:
        raise BenchmarkError(f"{key(place)}/{case}, {contender.name}, {count} messages: {error}") from None
    return spent
