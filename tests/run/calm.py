"""Waits until the machine is not so busy: what was late once is as late again a moment later."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

_NAP: Final = 0.01
_LATE: Final = 0.005  # by so much a nap may be too long
_IN_A_ROW: Final = 10
_SECONDS: Final = 10.0  # no longer: a machine may be busy from the first test to the last


def wait(sleep: Callable[[float], object] = time.sleep, now: Callable[[], float] = time.monotonic) -> bool:
    """Until ten naps in a row end when they should, for ten seconds at most; whether they did."""
    started = now()
    calm = 0
    while calm < _IN_A_ROW:
        before = now()
        if before - started >= _SECONDS:
            return False
        sleep(_NAP)
        calm = calm + 1 if now() - before < _NAP + _LATE else 0
    return True
