"""Brokers that answer, but with a refusal that passes: what they say, and the rows of the table about them.

The embedded broker says so itself (`broker.faults`). In a real one's place the proxy says it, and hangs up as brokers
do: over STOMP with an ERROR, over AMQP by closing the connection with a condition.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from tests.faults.proxy import Cut

if TYPE_CHECKING:
    from tests.faults.harm import Bench
    from tests.faults.work import Work

TEXT: Final = "the broker is starting, try again"
CONSUMERS, SENDS = "a consumer is refused thrice", "a send is refused thrice"
LOGINS, CHECKS = "the login is refused thrice", "SASL: the login cannot be checked, thrice"  # the latter of AMQP
REFUSING: Final = (CONSUMERS, SENDS)  # of which the program hears
_TIMES: Final = 3
_COMMANDS: Final = {CONSUMERS: "SUBSCRIBE", SENDS: "SEND"}
_MARKS: Final = {
    "stomp": {CONSUMERS: b"SUBSCRIBE\n", SENDS: b"SEND\ndestination:"},
    "amqp": {CONSUMERS: b"\x00\x53\x12", SENDS: b"\x00\x53\x14"},  # attach, transfer
}


def requests(what: str, bench: Bench, work: Work) -> None:
    """Thrice, a request of that kind is refused; a consumer's right after its connection has come back."""
    protocol, embedded = bench.pair.kind.protocol, bench.pair.embedded
    for _ in range(_TIMES):
        work.goes_on(5)
        heard = work.refusals
        if embedded is not None:
            embedded.faults.error(_COMMANDS[what], TEXT, times=None)
        else:
            answer = _stomp_error if protocol == "stomp" else _amqp_closes
            for proxy in bench.proxies:
                proxy.cut(Cut(_MARKS[protocol][what], answer=answer))
        if what == CONSUMERS:
            bench.hang_up()
        work.until(lambda: bench.happened() if embedded is None else work.refusals > heard)  # noqa: B023  # of this turn
        if embedded is not None:
            embedded.faults.clear()
    work.goes_on()


def logins(what: str, bench: Bench, work: Work) -> None:
    """The next three attempts to connect, by whichever way."""
    protocol = bench.pair.kind.protocol
    if bench.pair.embedded is not None and what == LOGINS:
        fault = bench.pair.embedded.faults.error("CONNECT", TEXT, times=_TIMES)
        bench.hang_up()
        work.until(lambda: fault.hits == _TIMES)
    else:
        refusal = _stomp_error(b"") if protocol == "stomp" else _amqp_refuses(checked=what == LOGINS)
        for proxy in bench.proxies:
            proxy.refusal = refusal
        bench.hang_up()
        work.until(lambda: sum(proxy.refusals for proxy in bench.proxies) >= _TIMES)
        for proxy in bench.proxies:
            proxy.refusal = b""
    work.goes_on()


HARMS: Final[Mapping[str, Callable[[Bench, Work], None]]] = {
    LOGINS: partial(logins, LOGINS),
    CHECKS: partial(logins, CHECKS),
    CONSUMERS: partial(requests, CONSUMERS),
    SENDS: partial(requests, SENDS),
}


def _stomp_error(refused: bytes) -> bytes:
    receipt = re.search(rb"\nreceipt:([^\n]+)", refused.partition(b"\n\n")[0])
    header = b"receipt-id:" + receipt[1] + b"\n" if receipt else b""
    return b"ERROR\nmessage:" + TEXT.encode() + b"\n" + header + b"\n\0"


def _amqp_closes(_: bytes) -> bytes:
    from tests.transports.amqp_frames import error, frame_bytes  # which needs proton

    return frame_bytes("close", 0, error=error("amqp:internal-error", TEXT))


def _amqp_refuses(*, checked: bool) -> bytes:
    """``checked``: it lets the user in, and closes the connection with a condition; else it cannot say who that is."""
    import proton  # which not everybody has
    from tests.transports.amqp_frames import HEADER, SASL_HEADER, frame_bytes  # the same

    names = [proton.symbol(name) for name in ("PLAIN", "ANONYMOUS")]
    offer = proton.Array(proton.UNDESCRIBED, proton.Data.SYMBOL, *names)
    sasl = SASL_HEADER + frame_bytes("sasl-mechanisms", 0, mechanisms=offer)
    if not checked:
        return sasl + frame_bytes("sasl-outcome", 0, code=4)
    opened = frame_bytes("open", 0, container_id="starting")
    return sasl + frame_bytes("sasl-outcome", 0, code=0) + HEADER + opened + _amqp_closes(b"")
