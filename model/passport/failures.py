"""Describes an exception as a passport has it: its class, text and stack, and the fingerprint of its place.

**The fingerprint** is made of the exception's class and of the innermost function of the application that it went
through, as module and qualified name; of an exception that was raised from another one, of the other's class and
function too, as a wrapper would otherwise be one place for all. A group is what its members are. Lines, texts, hosts
and the name of the program's file (``python worker.py`` or ``module:app``) are no part of it.

**The application** is what is neither this library, nor Python's, nor installed in site-packages. Where all of it is
installed, it is the package that was called first. Where there is no such frame, the innermost one is named, but one of
this library makes no difference to a fingerprint.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import PurePath
from types import FrameType
from typing import Final

from redelivery.model.passport.passport import Passport, clean, cut
from redelivery.model.passport.redaction import redacted_start

READ: Final = 2000  # characters of an exception's text, and of a name
_CAUSE: Final = 200  # of the text of a cause, in the stack
_DIGITS: Final = 12  # hexadecimal, of a fingerprint
_OUTER, _INNER = 20, 1000  # frames that are looked at
_LINES: Final = 40  # of a stack
_CHAIN: Final = 8  # exceptions, each raised from the next
_MEMBERS: Final = 32  # of a group, and of the groups in it
_OURS: Final = ("redelivery", "pyspark_redelivery")
_INSTALLED: Final = re.compile(r"[\\/](?:site|dist)-packages[\\/]")
_STDLIB: Final = os.path.dirname(os.__file__) + os.sep
_COMPREHENSIONS: Final = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")  # frames of their own until 3.12

_APPLICATION, _PACKAGE, _PYTHON, _LIBRARY = range(4)  # whose a frame is


@dataclass(frozen=True, slots=True)
class StackFrame:
    """A function that an exception went through; ``kind``: whose it is."""

    module: str
    function: str
    line: int | None
    kind: int

    @property
    def place(self) -> str:
        """``shop.orders:Order.place``."""
        return f"{self.module}:{self.function}"


def passport_of(error: BaseException | None) -> Passport:
    """The passport of an application's failure; of None an empty one. Without secrets, see `redaction`."""
    if error is None:
        return Passport()
    frames = _frames(error)
    found = _innermost(frames, error)
    text = text_of(error)
    return Passport(
        exception=cut(class_of(type(error)), READ),
        message=text,
        fingerprint=_fingerprint(error),
        frame=None if found is None else cut(found.place, READ),
        stack=(*_lines(frames), *_causes(error)),
    )


def class_of(kind: type) -> str:
    """``module.Class``, and ``Class`` of Python's own; the program's module has its name, and not ``__main__``."""
    module = getattr(kind, "__module__", None)
    name = str(kind.__qualname__)
    return name if module == "builtins" or not isinstance(module, str) else f"{_named(module)}.{name}"


def text_of(error: BaseException) -> str:
    """The ``str`` of an exception, without secrets; cut."""
    try:
        text = str(error)
    except BaseException as broken:  # noqa: BLE001 - the application's own __str__, which may raise what it likes
        return f"<its text cannot be read: {type(broken).__name__}>"
    return clean(redacted_start(text, READ))


def _fingerprint(error: BaseException) -> str:
    found = [_identity(error), *sorted(_identity(each) for each in _members(error))]
    said = json.dumps(list(dict.fromkeys(found)))
    return hashlib.sha256(said.encode()).hexdigest()[:_DIGITS]


def _identity(error: BaseException) -> str:
    """The class and function of it, and of what it was raised from."""
    found: list[tuple[str, str | None]] = []
    for each in _chain(error):
        frame = _innermost(_frames(each), each)
        counts = frame is not None and frame.kind != _LIBRARY and (not found or frame.kind == _APPLICATION)
        found.append((class_of(type(each)), frame.place if frame is not None and counts else None))
    return json.dumps(found)


def _members(error: BaseException) -> list[BaseException]:
    """The exceptions in a group that are no groups; of very many the first."""
    found: list[BaseException] = []
    todo = [error]
    for _ in range(_MEMBERS):
        if not todo:
            break
        each = todo.pop(0)
        if isinstance(each, BaseExceptionGroup):
            todo += each.exceptions[:_MEMBERS]
        elif each is not error:
            found.append(each)
    return found


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The exception, and those that it says it was raised from."""
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen and len(seen) < _CHAIN:
        yield at
        seen.add(id(at))
        at = at.__cause__


def _frames(error: BaseException) -> list[StackFrame]:
    """The frames that it went through, the outermost first; of very many the first and the last."""
    outer: list[tuple[FrameType, int | None]] = []
    inner: deque[tuple[FrameType, int | None]] = deque(maxlen=_INNER)
    at = error.__traceback__
    while at is not None:
        (outer if len(outer) < _OUTER else inner).append((at.tb_frame, at.tb_lineno))
        at = at.tb_next
    return [_frame(*each) for each in (*outer, *inner)]


def _frame(frame: FrameType, line: int | None) -> StackFrame:
    code, module = frame.f_code, frame.f_globals.get("__name__")
    if not isinstance(module, str) or not module:
        module = PurePath(code.co_filename).stem
    function = code.co_qualname
    while (cut_off := function.rpartition(".<locals>."))[2] in _COMPREHENSIONS:
        function = cut_off[0]
    return StackFrame(_named(module), function, line, _kind(module, code.co_filename))


def _named(module: str) -> str:
    """The name by which a module is imported: of ``__main__`` as well."""
    if module != "__main__":
        return module
    main = sys.modules.get("__main__")
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    name = getattr(spec, "name", None)
    if isinstance(name, str):
        return name.removesuffix(".__main__")
    return PurePath(file).stem if isinstance(file, str) else module


def _kind(module: str, file: str) -> int:
    if module.partition(".")[0] in _OURS:
        return _LIBRARY
    if _INSTALLED.search(file):
        return _PACKAGE
    return _PYTHON if file.startswith((_STDLIB, "<frozen ")) else _APPLICATION


def _innermost(frames: Sequence[StackFrame], error: BaseException) -> StackFrame | None:
    own = [each for each in frames if each.kind == _APPLICATION]
    if not own and (installed := [each for each in frames if each.kind == _PACKAGE]):
        root = installed[0].module.partition(".")[0]
        own = [each for each in installed if each.module.partition(".")[0] == root]
    if not own:
        own = [each for each in frames if each.kind == _PYTHON] or list(frames)
    if isinstance(error, RecursionError):  # which of the functions reached the limit is chance
        times = Counter(each.place for each in own)
        own = [each for each in own if times[each.place] > 1][:1] or own
    return own[-1] if own else None


def _lines(frames: Sequence[StackFrame]) -> Iterator[str]:
    """The lines of a stack: without this library's own, and each that is repeated once."""
    shown = [each for each in frames if each.kind != _LIBRARY] or list(frames)
    lines: list[str] = []
    for line, same in groupby(_line(each) for each in shown):
        lines.append(line)
        if (more := len(list(same)) - 1) > 0:
            lines.append(f"… {more} more of the same")
    if len(lines) > _LINES:
        lines[_LINES // 4 : -(_LINES - _LINES // 4)] = [f"… {len(lines) - _LINES} more"]
    yield from lines


def _line(frame: StackFrame) -> str:
    return cut(frame.place if frame.line is None else f"{frame.place}, line {frame.line}", READ)


def _causes(error: BaseException) -> Iterator[str]:
    """The lines of what it was raised from, or while; and of the members of a group."""
    seen = {id(error)}
    for member in _members(error):
        yield _headed("with", member)
        yield from _lines(_frames(member)[-2:])
    while len(seen) <= _CHAIN:
        cause = error.__cause__
        while_ = None if error.__suppress_context__ else error.__context__
        other = cause if cause is not None else while_
        if other is None or id(other) in seen:
            return
        yield _headed("caused by" if cause is not None else "while handling", other)
        yield from _lines(_frames(other))
        seen.add(id(other))
        error = other


def _headed(how: str, error: BaseException) -> str:
    return cut(clean(f"{how} {class_of(type(error))}: {text_of(error)}"), _CAUSE).replace("\n", " ")
