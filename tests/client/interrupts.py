"""KeyboardInterrupt at every place in turn: enumerated, not left to chance.

CPython looks for signals when a function begins, behind a call, and on the way back in a loop, in the main thread. So a
call is traced once to find those places in our code; then it is made again for each of them, with a signal that comes
just before. The signal is noted by a C function that runs no bytecode of ours after itself, so that the interpreter,
not the trace function, is the next to look.
"""

from __future__ import annotations

import _thread
import dis
import gc
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, TypeAlias

import redelivery
from redelivery.transports.wire.threads import guard

Place: TypeAlias = tuple[CodeType, int]
_ROOT = Path(redelivery.__file__).resolve().parents[2]
_TESTS = Path(__file__).resolve().parents[1]
_LOOKS = {"CALL", "CALL_KW", "CALL_FUNCTION_EX", "CALL_INTRINSIC_1", "JUMP_BACKWARD", "RESUME"}


class _Signal(int):
    """To read `comes` is to send it; attribute access is not followed by a look for signals."""

    comes = property(_thread.interrupt_main)


_ctrl_c = _Signal(signal.SIGINT)


def places(call: Callable[[], object]) -> list[Place]:
    """Where an interrupt may come while the call runs, in the order in which they are first reached."""
    found: dict[Place, None] = {}

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if not _ours(frame.f_code):
            return None
        frame.f_trace_opcodes = True
        if event in ("call", "opcode") and frame.f_lasti in _looks(frame.f_code):
            found[frame.f_code, frame.f_lasti] = None
        return trace

    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(None)
    return list(found)


def interrupted(place: Place, call: Callable[[], object]) -> bool:
    """Make the call with an interrupt at the place; whether the interrupt came out of it."""

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if not _ours(frame.f_code):
            return None
        frame.f_trace_opcodes = True
        if frame.f_code is place[0] and frame.f_lasti == place[1] and event in ("call", "opcode"):
            sys.settrace(None)
            frame.f_trace_opcodes = False
            return _ctrl_c.comes
        return trace

    with _guarded_handler():
        sys.settrace(trace)
        try:
            try:
                call()
            finally:
                sys.settrace(None)  # one that comes when the call has returned, as Python 3.13 may have it, counts
        except KeyboardInterrupt:
            return True
    return False


def named(place: Place) -> str:
    """For the text of an assertion."""
    code, offset = place
    line = next((line for start, end, line in code.co_lines() if start <= offset < end), 0)
    return f"{Path(code.co_filename).name}:{line} in {code.co_qualname} at {offset}"


def at_each_place(
    scene: Callable[[], Any], call: Callable[[Any], object], check: Callable[[Any], object], step: int = 1
) -> None:
    """One scene for each place, or one of ``step`` places; a scene has a `close`. ``check`` follows an interrupt."""
    gc.disable()  # or it may call a `__del__` in the call, and an interrupt there would be ignored
    try:
        _at_each_place(scene, call, check, step)
    finally:
        gc.enable()


def _at_each_place(
    scene: Callable[[], Any], call: Callable[[Any], object], check: Callable[[Any], object], step: int
) -> None:
    found: dict[Place, None] = {}
    for _ in range(2):  # what is only there the second time, too
        made = scene()
        found.update(dict.fromkeys(places(lambda made=made: call(made))))  # type: ignore[misc]  # bound at once
        made.close()
    outcomes: Counter[bool] = Counter()
    for place in list(found)[::step]:
        made = scene()
        gc.collect()
        came = interrupted(place, lambda made=made: call(made))  # type: ignore[misc]  # bound at once
        outcomes[came] += 1
        try:
            if came:
                check(made)
            made.close()
        except Exception as error:
            error.add_note(f"after an interrupt at {named(place)}")
            raise
    assert outcomes[True] > 5


@cache
def _looks(code: CodeType) -> frozenset[int]:
    return frozenset(each.offset for each in dis.get_instructions(code) if each.opname in _LOOKS) | {-1, 0}


@cache
def _ours(code: CodeType) -> bool:
    return (
        str(Path(code.co_filename).resolve()).startswith(str(Path(_ROOT).resolve().parents[1]))
        and not Path(code.co_filename).resolve().is_relative_to(_TESTS)  # wherever the clone is
    )


@contextmanager
def _guarded_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a detached process may ignore it
    guard.enter(_guarded_handler)
    try:
        yield
    finally:
        guard.leave(_guarded_handler)
        signal.signal(signal.SIGINT, before)
