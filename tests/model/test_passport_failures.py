"""What a passport says about an exception: a fingerprint of the place where it failed, and its str without secrets."""

from __future__ import annotations

import functools
import json
import runpy
import sys
import types
from collections.abc import Callable
from typing import Any

import pytest

from redelivery.model.passport import Passport, read_passport, write_passport
from redelivery.model.passport.failures import passport_of
from redelivery.model.passport.passport import MOST

SHOP = """
class OrderError(Exception): ...
class Order:
    def __init__(self, name): self.name = name
    def place(self): raise OrderError(f"order {self.name} of customer {id(self)} has no sku")
    def look(self): return {}[self.name]
    def both(self):
        try: self.look()
        except KeyError as error: raise OrderError(self.name) from error
    def neither(self):
        try: self.place()
        except OrderError as error: raise OrderError(self.name) from error
    def either(self):
        try: self.place()
        except OrderError: raise OrderError(self.name)
    def parse(self): return json.loads(self.name + "]")
    def every(self): return [self.check(each) for each in "ab"]
    def check(self, each): raise ValueError(each + self.name)
    def deep(self, n=0): return self.deeper(n + 1)
    def deeper(self, n): return self.deep(n + 1)
    def group(self):
        errors = []
        for each in (self.place, self.look):
            try: each()
            except Exception as error: errors.append(error)
        raise ExceptionGroup("several", errors[::ORDER])
    def lent(self): (lambda: 1 / 0)()
    def shadowed(self): raise OrderError("x")
"""
FAILURES = ("place", "look", "both", "neither", "parse", "every", "deep", "group", "lent", "shadowed")


def shop(*, shifted: int = 0, order: int = 1, name: str = "shop", file: str = "shop.py") -> dict[str, Any]:
    """A module of an application, with its functions so many lines further down."""
    names: dict[str, Any] = {"__name__": name, "json": json}
    exec(compile("\n" * shifted + SHOP.replace("ORDER", str(order)), file, "exec"), names)  # noqa: S102 - our own
    return names


def failed(call: Callable[[], object]) -> BaseException:
    try:
        call()
    except Exception as error:  # noqa: BLE001 - whichever it is
        return error
    raise AssertionError("it did not fail")


def passport(call: Callable[[], object]) -> Passport:
    return passport_of(failed(call))


PAIRS = [
    (failure, shifted, other)
    for failure in FAILURES
    for shifted, other in ((1, "4711"), (40, "Ada"), (7, "b" * 3000), (0, "\0\ud800"), (3, ""))
]


@pytest.mark.parametrize(("failure", "shifted", "other"), PAIRS)
def test_a_failure_keeps_its_fingerprint(failure: str, shifted: int, other: str) -> None:
    """Fifty pairs: other lines, ids and names; members of a group in another order; another way to start it."""
    one = passport(getattr(shop()["Order"]("4712"), failure))
    names = shop(shifted=shifted, order=-1, file="/srv/other/shop.py")
    two = passport(lambda: (lambda: getattr(names["Order"](other), failure)())())
    assert (one.exception, one.frame, one.fingerprint) == (two.exception, two.frame, two.fingerprint)
    assert one.stack != two.stack or not shifted


def test_other_failures_have_other_fingerprints() -> None:
    order = shop()["Order"]("4712")
    found = [passport(getattr(order, each)).fingerprint for each in FAILURES]
    found.append(passport(shop(name="shop.other")["Order"]("4712").place).fingerprint)
    found.append(passport_of(ValueError("x")).fingerprint)
    found.append(passport_of(KeyError("x")).fingerprint)
    assert len(set(found)) == len(found) == 13
    # what an exception was not said to be raised from is chance
    assert passport(order.either).fingerprint == passport(order.either).fingerprint


def test_where_it_failed() -> None:
    order = shop(shifted=10)["Order"]("4712")
    found = passport(order.both)
    assert (found.exception, found.frame, found.message) == ("shop.OrderError", "shop:Order.both", "4712")
    assert found.stack[-4:] == (
        "shop:Order.both, line 19",
        "caused by KeyError: '4712'",
        "shop:Order.both, line 18",
        "shop:Order.look, line 16",
    )
    assert passport(order.parse).frame == "shop:Order.parse"
    assert passport(order.every).frame == "shop:Order.check"
    assert passport(order.deep).frame == "shop:Order.deep"
    assert passport(order.group).stack[-6:] == (
        f"with shop.OrderError: {failed(order.place)}",
        "shop:Order.group, line 34",
        "shop:Order.place, line 15",
        "with KeyError: '4712'",
        "shop:Order.group, line 34",
        "shop:Order.look, line 16",
    )


def run_by(call: Callable[[], object], *modules: tuple[str, str]) -> Passport:
    """The passport of what ``call`` raises, called by functions of these modules and files, the first one first."""
    for name, file in reversed(modules):
        call = types.FunctionType(compile("call()", file, "exec"), {"call": call, "__name__": name})
    error = failed(call)
    assert error.__traceback__ is not None
    return passport_of(error.with_traceback(error.__traceback__.tb_next))


def test_the_application_is_not_what_it_stands_on() -> None:
    """Python's own, installed packages and this library are named where nothing else is there."""
    ours, python = ("redelivery.client", "client.py"), ("runpy", runpy.__file__)
    place = shop(name="framework.core", file="/v/lib/python3.12/site-packages/framework/core.py")["Order"]("x").place
    installed = [(f"{name}.app", f"/v/lib/python3/dist-packages/{name}/app.py") for name in ("framework", "shop")]
    application = ("shop.app", "/srv/shop/app.py")
    assert run_by(place, ours, application).frame == "shop.app:<module>"
    assert run_by(place, ours, python, application, python).frame == "shop.app:<module>"
    assert run_by(place, ours, python, installed[0]).frame == "framework.core:Order.place"
    assert run_by(place, ours, installed[1]).frame == "shop.app:<module>"
    loads = functools.partial(json.loads, "{")
    assert run_by(loads, ours).frame == "json.decoder:JSONDecoder.raw_decode"
    assert run_by(loads, ours, installed[1]).frame == "shop.app:<module>"
    library = run_by(functools.partial(Passport, version=0), ours)
    assert library.frame == "redelivery.model.passport.passport:Passport.__post_init__"
    assert library.fingerprint == passport_of(ValueError("never raised")).fingerprint


def test_a_program_is_called_as_its_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """``python worker.py``, ``python -m worker`` and ``redelivery run worker:app`` are one application."""
    imported = passport(shop(name="worker")["Order"]("x").place)
    for main in ({"__file__": "/srv/worker.py"}, {"__spec__": types.SimpleNamespace(name="worker")}):
        module = types.ModuleType("__main__")
        vars(module).update(main)
        monkeypatch.setitem(sys.modules, "__main__", module)
        started = passport(shop(name="__main__")["Order"]("y").place)
        assert (started.exception, started.frame) == ("worker.OrderError", "worker:Order.place")
        assert started.fingerprint == imported.fingerprint


class Unreadable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


class Strange(Exception):
    def __str__(self) -> str:
        return 5  # type: ignore[return-value]  # an application's mistake


def recursion() -> object:
    return recursion()


def chained(depth: int) -> BaseException:
    error: BaseException = ValueError("the first")
    for number in range(depth):
        other = KeyError(number)
        other.__cause__, error = error, other
    return error


def circular() -> BaseException:
    one, two = ValueError(1), ValueError(2)
    one.__cause__, two.__cause__ = two, one
    return one


def nested(depth: int) -> BaseException:
    error: BaseException = ValueError("\0" * 500)
    for _ in range(depth):
        error = BaseExceptionGroup("group \U0001f600" * 50, [error] * 16)
    return error


STRANGE: list[Callable[[], BaseException]] = [
    lambda: ValueError("x" * 10_000_000),
    lambda: ValueError("\U0001f600" * 100_000),
    lambda: ValueError("\0\x1b]0;x\x07\r\n\u202e" * 1000),
    lambda: ValueError("\ud800\udfff"),
    lambda: ValueError(*range(1000)),
    lambda: ValueError("password='" * 1000),
    ValueError,
    Unreadable,
    Strange,
    lambda: failed(recursion),
    lambda: chained(5000),
    circular,
    lambda: nested(60),
    lambda: UnicodeDecodeError("utf-8", b"\xff" * 1000, 0, 1, "x" * 5000),
    lambda: type("E" * 3000, (Exception,), {"__module__": None})("x"),
    lambda: type("\x1b\U0001f600", (Exception,), {"__module__": "\U0001f600" * 999})("x"),
    lambda: KeyboardInterrupt(),
    lambda: SystemExit(3),
]


@pytest.mark.parametrize("make", STRANGE)
def test_any_exception_has_a_passport(make: Callable[[], BaseException]) -> None:
    error = make()
    found = passport_of(error)
    written = write_passport(found)
    assert len(written) <= MOST
    assert written.isascii()
    read = read_passport(written)
    assert read is not None
    assert read.fingerprint == found.fingerprint == passport_of(error).fingerprint
    assert write_passport(read) == written
    if len(write_passport(found, 10**9)) <= MOST:
        assert read == found


def test_no_exception_has_an_empty_one() -> None:
    assert passport_of(None) == Passport()
