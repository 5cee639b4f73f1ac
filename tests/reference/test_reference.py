"""The reference has every public name, every option, every event, error and command, as the code has them."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.reference import options
from tests.reference.docstrings import entries, markdown, parameters_of
from tests.reference.names import PAGES, public

import redelivery
from redelivery.broker.vm import transport as vm
from redelivery.client import arguments
from redelivery.client import options as connecting
from redelivery.client.containers import settings
from redelivery.model.content import headers
from redelivery.policies.activemq import reconnect_names, redelivery_names
from redelivery.policies.prefetch import BEAN
from redelivery.spark.options.table import OPTIONS
from redelivery.transports.stomp import adapter as stomp

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
# Modules of `src/redelivery` and rooms that users import as a whole: what is in their `__all__` is public.
ROOMS = ("aio", "events", "policies", "broker", "testing", "otel", "prometheus", "web")
MODULES = ("redelivery", *(f"redelivery.{room}" for room in ROOMS))


def headings() -> set[str]:
    found = set()
    for page in REFERENCE.glob("*.md"):
        found |= set(re.findall(r"^##+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE))
    return found


def rooms() -> Iterator[str]:
    """The rooms that have an `__all__`."""
    for path in (Path(__file__).parents[2] / "src" / "redelivery").iterdir():
        if path.stem != "__pycache__" and (path.is_dir() or path.suffix == ".py") and path.stem != "__main__":
            name = "redelivery" if path.stem == "__init__" else f"redelivery.{path.stem}"
            if public(name):
                yield name


def test_each_room_with_public_names_is_in_the_reference() -> None:
    assert set(rooms()) == set(MODULES)
    assert set(MODULES) <= {module for _, _, parts in PAGES.values() for module, _ in parts}


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_has_its_heading(module: str) -> None:
    short = module.removeprefix("redelivery").removeprefix(".")
    missing = [name for name in public(module) if (f"{short}.{name}" if short else name) not in headings()]
    assert missing == [], "run scripts/reference"


def given() -> Iterator[tuple[str, str]]:
    """Each option that can be given, and to what, read where the code itself reads it."""
    for keywords, of in (
        (connecting.ConnectionKeywords, "`connect`"),
        (arguments.ConsumerKeywords, "`Session.consumer`"),
        (arguments.ProducerKeywords, "`Session.producer`"),
        (headers.SendKeywords, "`Producer.send`"),
        (settings.ContainerKeywords, "`listener_container`"),
    ):
        yield from ((name, of) for name in keywords.__annotations__)
    yield from ((f"jms.redeliveryPolicy.{name}", "URL") for name in redelivery_names.BEAN)
    yield from ((f"jms.prefetchPolicy.{name}", "URL") for name in BEAN)
    yield from ((name, "URL, `failover:`") for name in (*reconnect_names.RECONNECT_OPTIONS, "priorityURIs"))
    yield from ((name, "URL") for name in ("jms.nonBlockingRedelivery", "jms.clientID", "jms.userName", "jms.password"))
    yield from ((name, "URL, `stomp:`") for name in stomp._PARAMS)
    yield from ((name, "URL, `vm:`") for name in vm._OPTIONS)
    for policy in options.POLICIES:
        for each in parameters_of(getattr(redelivery, policy)):
            if each.name not in options.INTERNAL:
                yield each.name, f"[{policy}]"
    yield from ((each.name, "Spark") for each in OPTIONS)
    for _, command in options.commands():
        yield from (
            (each.opts[0], "") for each in filter(options.is_option, command.params) if "--help" not in each.opts
        )


def test_every_option_has_a_row_with_its_type_and_meaning() -> None:
    page = (REFERENCE / "options.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in page.replace("\\|", "/").splitlines() if line.startswith("| `")]
    there = {(name, row[1]) for row in rows for name in row[0].strip("`").split(" or ")}
    missing = [(name, of) for name, of in given() if not any(name == other and of in where for other, where in there)]
    assert missing == [], "run scripts/reference"
    assert [row[0] for row in options.rows() if not row.meaning.strip()] == []
    assert [row.option for row in options.rows() if not row.type and row.option != "nested.*"] == []


def test_a_duration_has_a_unit() -> None:
    without = [
        (row.option, row.of)
        for row in options.rows()
        if not row.unit and re.search(r"timedelta|duration|Seconds", row.type) is not None
    ]
    assert without == []


def test_the_options_of_amqp_are_those_that_it_takes() -> None:
    login = pytest.importorskip("redelivery.transports.amqp.connection.login", exc_type=ImportError)
    assert {row.option for row in options.rows() if row.of == "URL, `amqp:`"} == set(login._KNOWN)


def test_every_command_has_its_heading() -> None:
    assert [words for words, _ in options.commands() if words not in headings()] == []


def test_every_module_that_it_names_can_be_imported() -> None:
    modules = {module for name, (_, _, parts) in PAGES.items() if name != "integrations" for module, _ in parts}
    assert [module for module in modules if not importlib.import_module(module)] == []


TEXT = """The first line, with `code` and *stars*.

``delay`` (5), ``cap``: seconds; for
    both.
``name``: what it is.

Args:
    first, second: of `delay`.

Raises:
    ValueError: it is
        <wrong>.
"""


def test_a_docstring_is_written_as_markdown() -> None:
    text = markdown(TEXT.strip(), link=lambda code: "#delay" if code == "delay" else None)
    assert text == (
        "The first line, with `code` and \\*stars\\*.\n\n"
        "- [`delay`](#delay) (5), `cap`: seconds; for both.\n- `name`: what it is.\n\n"
        "**Parameters**\n\n- `first`, `second`: of [`delay`](#delay).\n\n"
        "**Raises**\n\n- `ValueError`: it is \\<wrong>."
    )
    assert entries(TEXT) == {
        "delay": "seconds; for both.",
        "cap": "seconds; for both.",
        "name": "what it is.",
        "first": "of `delay`.",
        "second": "of `delay`.",
    }
