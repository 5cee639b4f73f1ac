"""The pages of docs/reference that `scripts/reference` writes."""

from __future__ import annotations

import dataclasses
import inspect
import re
from enum import Enum
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from tests.reference import docstrings, options
from tests.reference.docstrings import Link, inline, markdown, parameters_of
from tests.reference.names import PAGES, SPARK, Name, bases, function_of, is_made, members, names_of, values_of
from tests.reference.sources import source_of

import redelivery
from redelivery import events

FOLDER: Final = Path(__file__).parents[2] / "docs" / "reference"
_MODULES: Final = re.compile(r"\b(?:redelivery|collections|typing|datetime)(?:\.[a-z_]+)*\.(?=[A-Z])")
WIDE: Final = 96  # of a signature, before it has a line for each parameter
# What docstrings name that has no page of its own -> what the reader finds instead, and where.
ELSEWHERE: Final = {
    "all options": "options.md",
    "redelivery.model.events": "events.md",
    "redelivery.events": "events.md",
}
_KEYWORDS: Final = re.compile(r"`redelivery\.[a-z_.]+\.\w+Keywords`")


def pages() -> dict[Path, str]:
    """All of them, by their paths."""
    made = {FOLDER / f"{page}.md": _page(page) for page in shown()}
    return {**made, FOLDER / "options.md": options.page(), FOLDER / "commands.md": _commands()}


def shown() -> list[str]:
    """The pages that can be written here: one needs Spark."""
    return [page for page in PAGES if page != SPARK or find_spec("pyspark")]


@cache
def anchors() -> dict[str, str]:
    """Where each name is described: `Session.consumer` -> `client.md#sessionconsumer`."""
    found: dict[str, str] = {}
    for page in shown():
        for each in names_of(page):
            for heading in (each.heading, *(f"{each.heading}.{name}" for name in _below(each))):
                found.setdefault(heading, f"{page}.md#{anchor(heading)}")
    return found


def anchor(heading: str) -> str:
    """As GitHub and MyST name it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _below(name: Name) -> list[str]:
    return [member for member, _ in members(name.value)] if inspect.isclass(name.value) else []


def text_of(thing: object) -> str:
    """Its docstring, in which the keywords of several calls are named as the table that has them."""
    return _KEYWORDS.sub("`all options`", docstrings.text_of(thing))


def _linking(page: str, owner: str) -> Link:
    def link(code: str) -> str | None:
        code = code.removesuffix("()")
        target = ELSEWHERE.get(code)
        for name in (f"{owner}.{code}", code, code.removeprefix("redelivery.")):
            target = target or anchors().get(name)
        return target and target.removeprefix(f"{page}.md") if target else None

    return link


def _page(page: str) -> str:
    title, first, _ = PAGES[page]
    lines = [f"# {title}\n", f"Written by `scripts/reference` from the docstrings. {first}\n"]
    for each in names_of(page):
        lines += _name(page, each)
    return "\n".join(lines).rstrip() + "\n"


def _name(page: str, name: Name) -> list[str]:
    value, link = name.value, _linking(page, name.heading)
    lines = [f"## {name.heading}\n"]
    fixture = getattr(value, "__wrapped__", None)
    value = fixture if fixture is not None and "Fixture" in type(value).__name__ else value
    if not inspect.isclass(value):
        called = callable(value) and "Fixture" not in type(name.value).__name__
        signature = [_signature(name.heading, value)] if called and not _is_alias(value) else []
        text = text_of(value) if not _is_alias(value) else _alias(value)
        return [*lines, *signature, markdown(text, _known(value), link), "", *_source(name)]
    if not is_made(value):
        lines.append(_signature(name.heading, value))
    lines += [*_bases(value, link), markdown(text_of(value), _known(value), link), "", *_source(name), *_fields(value)]
    if values := values_of(value):
        lines.append(f"Values: {', '.join(values)}\n")
    for member, static in members(value):
        lines += _member(page, name, member, static)
    return lines


def _source(name: Name) -> list[str]:
    found = source_of(name.heading)
    return [f"Follows: {found}.\n"] if found else []


def _member(page: str, name: Name, member: str, static: Any) -> list[str]:
    function, heading = function_of(static), f"{name.heading}.{member}"
    lines = [f"### {heading}\n"]
    if isinstance(static, property):
        kind = _annotation(inspect.signature(function).return_annotation)
        lines.append(f"A property{f': `{kind}`' if kind else ''}.\n")
    else:
        lines.append(_signature(heading, function))
    text = text_of(function) or _inherited(name.value, member)
    return [*lines, markdown(text, _known(function), _linking(page, name.heading)), ""]


def _inherited(kind: type, member: str) -> str:
    return next((text for base in kind.__mro__ if (text := text_of(function_of(vars(base).get(member))))), "")


def _known(value: Any) -> frozenset[str]:
    names = {each.name for each in parameters_of(value)} if callable(value) else set()
    return frozenset(names | set(getattr(value, "__dataclass_fields__", {})))


def _is_alias(value: Any) -> bool:
    return not (inspect.isfunction(value) or inspect.isclass(value) or inspect.ismethod(value))


def _alias(value: Any) -> str:
    text, event = (_MODULES.sub("", str(each)) for each in (value, events.Event))
    return f"A type: ``{text if value is events.Event else text.replace(event, 'Event')}``."


def _bases(kind: type, link: Link) -> list[str]:
    public = {*redelivery.__all__, *bases()}
    named = [each.__name__ for each in kind.__mro__[1:] if each.__name__ in public or each.__module__ == "builtins"]
    named = [each for each in named if each not in ("object", "Exception", "BaseException", "int")]
    return [f"Also a {', '.join(inline(f'`{each}`', link) for each in named)}.\n"] if named else []


def _fields(kind: type) -> list[str]:
    """What an instance has beside what it is made of: only the fields that no parameter stands for."""
    if not dataclasses.is_dataclass(kind):
        return []
    shown = [each for each in dataclasses.fields(kind) if not each.name.startswith(("_", "given_"))]
    rows = [f"`{each.name}` (`{_annotation(each.type)}`)" for each in shown]
    return [f"Fields: {', '.join(rows)}\n"] if rows else []


def _signature(heading: str, function: Any) -> str:
    """A call as it is written, in a block of code."""
    signature = inspect.signature(function)
    parts, keywords = list[str](), False
    for each in signature.parameters.values():
        if each.name in ("self", "cls") or each.name.startswith(("_", "given_")):
            continue
        if each.kind is inspect.Parameter.KEYWORD_ONLY and not keywords:
            keywords = True
            parts.append("*")
        stars = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(each.kind.name, "")
        keywords = keywords or stars == "*"
        kind = _annotation(each.annotation)
        default = "" if each.default is inspect.Parameter.empty else f" = {_default(each.default)}"
        parts.append(f"{stars}{each.name}{f': {kind}' if kind else ''}{default}")
    result = "" if inspect.isclass(function) else _annotation(signature.return_annotation)
    begin = "await " if inspect.iscoroutinefunction(function) else ""
    end = f" -> {result}" if result else ""
    line = f"{begin}{heading}({', '.join(parts)}){end}"
    if len(line) > WIDE:
        line = f"{begin}{heading}(\n" + "".join(f"    {each},\n" for each in parts) + f"){end}"
    return f"```py\n{line}\n```\n"


def _default(value: object) -> str:
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, frozenset):  # whose own order differs from process to process
        value = f"frozenset({sorted(value)})" if value else "frozenset()"
        return value.replace("'", '"')
    return "..." if repr(value).startswith("<") else repr(value).replace("'", '"')


def _annotation(kind: object) -> str:
    if kind is inspect.Signature.empty:
        return ""
    text = kind if isinstance(kind, str) else inspect.formatannotation(kind)
    text = re.sub(r"\bSeconds\b", "float | timedelta", text)
    return re.sub(r"\b(?:redelivery|collections|typing|datetime|builtins)(?:\.[a-z_]+)*\.(?=[A-Z])", "", text).strip(
        "'"
    )


def _commands() -> str:
    lines = [
        "# Commands\n",
        "Written by `scripts/reference` from the commands themselves. Exit codes: 0 done, 1 failed, 2 wrong usage, 130",
        "interrupted. The [guide](../guide/command-line.md) has examples; [one table](options.md) has the options.\n",
    ]
    for words, command in options.commands():
        below = getattr(command, "commands", {})
        arguments = [
            each for each in command.params if not options.is_option(each) and not getattr(each, "hidden", False)
        ]
        named = {each: each.metavar or each.name.upper() for each in arguments}
        given = "".join(f" {name}" if each.required or "[" in name else f" [{name}]" for each, name in named.items())
        usage = f"{words} COMMAND …" if below else f"{words}{given}"
        lines += [f"## {words}\n", f"```text\n{usage}\n```\n", markdown(inspect.cleandoc(command.help or "")), ""]
        lines += [f"- `{name}`: {inline(each.help or '')}" for each, name in named.items()]
        lines += [""] if arguments else []
        rows = [options.option_row(each, "") for each in filter(options.is_option, command.params)]
        if rows:
            lines += ["| option | type | default | meaning |", "|---|---|---|---|"]
            for row in rows:
                cells = (f"`{row.option}`", f"`{row.type}`", row.default and f"`{row.default}`", row.meaning)
                lines.append("| " + " | ".join(each.replace("|", "\\|") for each in cells) + " |")
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"
