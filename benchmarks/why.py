"""Why a target is missed: for each row what its time is spent on, and which promise it pays for."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Final

from benchmarks.results import Comparison, Measure, Results, Stored, Timing

UNKNOWN: Final = "**no reason is known yet**"
TITLE: Final = "Missed targets: what the time is spent on"
INTRODUCTION: Final = """
    Of each row whose target is missed, what the time is spent on and which promise it pays for; docs/cpu.md has the
    functions. Over STOMP some ratios are below those of the day on which the targets were set (AUTO was at 2.7,
    INDIVIDUAL at 4.15, the commits at 2.3, 4.9 and 4.9), though by docs/cpu.md, where no scheduler is in the numbers, a
    message takes no more processor time than on that day. Added since then: each step is noted before the next, and
    what cannot be is handed over to another thread, so that Ctrl-C and a cancelled task lose nothing and acknowledge
    nothing twice; each delivery knows its connection, which may come back; an observer is asked for. Here the peer is
    another process, so that writes to it and wake-ups are in both numbers of a ratio, and so is the machine of the day:
    a bare socket's ratio says what a client could reach at most.
"""
# by the case of benchmarks.cpu_page
OF_PROCESSOR: Final[Mapping[str, str]] = {
    "auto": """the bare loop writes an ACK for each message too; the rest is the way there, each step noted before the
        next: AUTO acknowledges as `receive` returns, and Ctrl-C neither loses a message nor acknowledges one twice""",
    "auto-many": "as DUPS_OK; the ACKs of a list leave together, before the list is handed over",
    "individual": """a message is two calls, `receive` and `acknowledge`, each of which lets one thread in and notes its
        steps, and an entry of the ledger made and removed: a second acknowledge, or one by an object from before a
        redelivery, does nothing""",
    "dups-ok": """ACKs leave together and cost little, so it is Python that cuts the frame, finds subscription, expiry,
        ids and text in its bytes, and asks the ledger: what is not STOMP, has expired or is over its limit is not
        shown, and an interrupted `receive` puts its message back""",
    "commit-100": """as DUPS_OK, and the ledger holds each message until the commit: a rollback redelivers all of them,
        in order; their ACKs join the transaction in parts, or a broker whose window is full would stop""",
    "commit-10": "as with a commit every 100, and the broker's answer to the commit is waited for ten times as often",
    "commit-1": "a write, a wait and a read for each message: `commit` returns when the broker has confirmed it",
    "send-100": """each send is checked, stamped, encoded as a frame of its own, and has a future of its own, which its
        RECEIPT or error completes""",
    "send-100-properties": "each name and value is checked by JMS's rules, and escaped as STOMP asks",
    "send": "a write, a wait and a read for each message: `send` returns when the broker has confirmed it",
    "amqp-auto": """the largest part is one row of proton's calls (`rows.py:run`), which settles and writes, and which
        Ctrl-C cannot tear: one write for each message is what AUTO promises""",
    "amqp-individual": """as AUTO, but for the write, since dispositions leave together; and the ledger's entry as over
        STOMP""",
    "amqp-send-100": """the largest part is one row of proton's calls for each message (`rows.py:run`), which makes a
        transfer of it; the disposition that answers completes a future of its own""",
    "amqp-send": """a write, a wait and a read for each message, all through proton: `send` returns when the broker has
        accepted it""",
}
_LARGE: Final = """glibc takes a block of more than 32 MiB from the system each time (mallopt(3), M_MMAP_THRESHOLD), and
    the first touch of its pages costs more than the copy into them; the thresholds are the application's to set, and
    `python -m benchmarks.large` shows what is left then"""
# by place and case, or by the key of a measure
OF_WALL: Final[Mapping[str, str]] = {
    **{f"stomp/fake/{case}": OF_PROCESSOR[case] for case in ("auto", "individual", "dups-ok")},
    **{f"stomp/fake/{case}": OF_PROCESSOR[case] for case in ("commit-1", "commit-10", "commit-100")},
    "amqp/fake/auto": OF_PROCESSOR["amqp-auto"],
    "amqp/fake/unread": """as AUTO: body and id stay undecoded on both sides, so that it is the row of proton's calls
        and the write for each message that are left, where the raw client's acknowledgements leave together""",
    "amqp/fake/send-500": f"""{OF_PROCESSOR["amqp-send-100"]}; for how many messages an answer is, the peer decides, and
        this one answers each read at once""",
    "stomp/activemq/auto": """our process waits for the broker: each ACK leaves by itself, as AUTO acknowledges each
        message as `receive` returns (so does the Java client); raw stomp.py leaves Nagle's algorithm on, which lets
        several of its ACKs leave together""",
    "amqp/artemis/commit-1": """what is enlisted, its discharge and the next declaration are one write, and then the
        broker's answer is waited for: `commit` returns when the broker has confirmed it; the main thread hands this
        over to a thread that Ctrl-C does not reach, so that a transaction is committed, in doubt, or as it was""",
    "amqp/artemis/commit-100": """as with a commit each, once in a hundred messages; the ledger holds each message until
        the commit, so that a rollback redelivers all of them, in order""",
    **{f"{protocol}-linear-{kind}": _LARGE for protocol in ("stomp", "amqp") for kind in ("text", "nul", "random")},
}


def missed(results: Results) -> Iterator[tuple[str, str, str]]:
    """Name, title, and what the numbers themselves say, of each row whose target is missed."""
    for each in results.comparisons:
        for other in each.others:
            if each.reached(other) is False:
                title = f"{each.place_name}, {each.title}, against {other.name}"
                yield f"{each.place}/{each.key}", title, _facts(each, other)
    for step in results.stored:
        if not step.reached:
            yield _stored(step), f"{step.protocol.upper()}, stored: {step.title}", ""
    bare = next((each.value for each in results.measures if each.key == "bare-linear-text"), None)
    for measure in results.measures:
        if measure.reached is False:
            yield measure.key, measure.title, _at_most(measure, bare)


def lines(results: Results) -> Iterator[str]:
    """An item of a list for each sentence, with all rows that it is about."""
    found: dict[str, list[str]] = {}
    for name, title, facts in missed(results):
        found.setdefault(" ".join(OF_WALL.get(name, UNKNOWN).split()) + facts, []).append(title)
    for sentence, titles in found.items():
        yield textwrap.fill(f"- {'; '.join(titles)}: {sentence}.", 120, subsequent_indent="  ")


def _facts(each: Comparison, other: Timing) -> str:
    """What a bare socket reaches, and how long our process waits."""
    found = []
    if each.limit is not None:
        faster = each.limit.median / other.median
        cheaper = "" if not (each.limit.cpu and other.cpu) else f", of processor time {other.cpu / each.limit.cpu:.2f}"
        found.append(f"a bare socket's ratio is {faster:.2f}{cheaper}")
    waiting = 0.0 if each.mine.cpu is None else 1 - each.mine.cpu * each.mine.median / 1e6
    if waiting > 0.1:
        found.append(f"our process waits {waiting:.0%} of the time")
    return f" ({'; '.join(found)})" if found else ""


def _at_most(measure: Measure, bare: float | None) -> str:
    """What a bare socket reaches of the same."""
    linear = "-linear-" in measure.key
    return f" (a bare socket, without a client: {bare:.2f})" if linear and bare is not None else ""


def _stored(step: Stored) -> str:
    return f"stored/{step.protocol}/{step.title}"
