"""A wrong value in a dialect's table, and the test that must notice it.

As a pytest plug-in it plants what the environment says: ``REDELIVERY_PLANT=stomp.artemis.silence_limit``, which takes
the wrong value of `dialect_fields_stomp`. As a program it plants each in turn and tells what no test noticed:

    python -m tests.transports.planting stomp [broker [field]]
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from redelivery.transports.dialects import detect, unknown

PLANT = "REDELIVERY_PLANT"


@dataclass(frozen=True, slots=True)
class Fact:
    """A field of one broker's table: a value that would be wrong there, and the test that fails with it.

    ``test`` is a node id below tests/, of all its cases or of those that ``only`` chooses (as pytest's ``-k``); on the
    real broker where it can be, so that the broker says what is right.
    """

    wrong: Any
    test: str
    only: str = ""


Facts = Mapping[str, Mapping[str, Fact]]  # by the name of the dialect, by field


def facts(protocol: str) -> Facts:
    """The table of a protocol: ``STOMP`` of `dialect_fields_stomp`."""
    found: Facts = getattr(import_module(f"tests.transports.dialect_fields_{protocol}"), protocol.upper())
    return found


def tables(protocol: str) -> dict[str, tuple[Any, Any]]:
    """All tables, those of later versions as ``rabbitmq 4``; each with the one that it is a change of, or None."""
    found: dict[str, tuple[Any, Any]] = {}
    for name, dialect in detect._DIALECTS.items():
        before = getattr(dialect, protocol)
        if before is not None:
            found[name] = before, None
        for since, table in reversed(getattr(dialect, f"{protocol}_since")):
            found[f"{name} {'.'.join(map(str, since))}"] = table, before
            before = table
    return found


def plant(protocol: str, broker: str, field: str) -> None:
    """From now on this process believes the wrong value."""
    name, _, version = broker.partition(" ")
    dialect = detect._DIALECTS[name]
    wrong = replace(tables(protocol)[broker][0], **{field: facts(protocol)[broker][field].wrong})
    since = f"{protocol}_since"
    later = [(each, wrong if ".".join(map(str, each)) == version else table) for each, table in getattr(dialect, since)]
    planted = replace(dialect, **({since: tuple(later)} if version else {protocol: wrong}))
    broker = name
    detect._DIALECTS = {**detect._DIALECTS, broker: planted}  # type: ignore[misc]  # that is what it is for
    if broker == "unknown":  # not looked up: it is what remains
        vars(unknown)["DIALECT"] = planted


def pytest_configure() -> None:
    """Plant what the environment names."""
    if PLANT in os.environ:
        protocol, broker, field = os.environ[PLANT].split(".")
        plant(protocol, broker, field)


def unnoticed(protocol: str, broker: str = "", field: str = "") -> Iterator[str]:
    """What was planted and found by no test, one after the other."""
    for name, table in facts(protocol).items():
        for each, fact in table.items():
            if broker in ("", name) and field in ("", each):
                planted = f"{protocol}.{name}.{each}"
                command = [sys.executable, "-m", "pytest", "-qx", "-n0", "-p", "no:cacheprovider", "--tb=line"]
                command += ["-p", "tests.transports.planting", f"tests/{fact.test}"]
                command += ["-k", fact.only] if fact.only else []
                ran = subprocess.run(  # noqa: S603  # ourselves
                    command, env={**os.environ, PLANT: planted}, stdout=subprocess.PIPE, text=True, check=False
                )
                print("noticed" if ran.returncode == 1 else f"UNNOTICED ({ran.returncode})", planted, fact, flush=True)
                if ran.returncode != 1:
                    yield planted


if __name__ == "__main__":
    sys.exit(bool(list(unnoticed(*sys.argv[1:]))))
