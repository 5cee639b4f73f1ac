"""Reads docstrings of the product, and writes them as Markdown.

They are Markdown already, but for sections (``Args:``, ``Raises:``, ``Returns:``) and for entries, which are lines that
begin with a name, or names, and a colon; both become lists.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from typing import Any, Final

SECTIONS: Final = {
    "Args:": "Parameters",
    "Raises:": "Raises",
    "Raises, when awaited:": "Raises, when awaited",
    "Raises, from the iteration:": "Raises, from the iteration",
    "Attributes:": "Attributes",
    "Returns:": "Returns",
    "Yields:": "Yields",
}
_LIST: Final = ("Args:", "Raises:", "Raises, when awaited:", "Raises, from the iteration:", "Attributes:")
_NAME: Final = r"(?:``\w+``(?: \([^)]*\))?|\w+)"
_ENTRY: Final = re.compile(rf"({_NAME}(?:, {_NAME})*): (?=\S)")
_CODE: Final = re.compile(r"(``?)(.+?)\1", re.DOTALL)
_WORD: Final = re.compile(r"``(\w+)``(?: \(([^)]*)\))?|(\w+)")
Link = Callable[[str], str | None]  # the target of what stands between backticks


def text_of(thing: object) -> str:
    """Its own docstring, or the one that it inherits; empty where there is none but Python's."""
    own = getattr(thing, "__doc__", None)
    if inspect.isclass(thing) and own is not None and own.startswith(f"{thing.__name__}("):
        own = None  # what a dataclass writes by itself
    return inspect.cleandoc(own) if own else ""


def entries(text: str, known: frozenset[str] | None = None) -> dict[str, str]:
    """Each name that has an entry, of a section Args or of its own, and its meaning in one line.

    ``known``: the names that there can be. A default in brackets stays before the meaning.
    """
    found: dict[str, str] = {}
    for kind, body in _parts(text, known):
        if kind == "Args:" or kind == "entry":
            for item in _items(body) if kind == "Args:" else [body]:
                match = _ENTRY.match(item)
                if match is None:
                    continue
                meaning = " ".join(item[match.end() :].split())
                for name in _WORD.finditer(match[1]):
                    found.setdefault(name[1] or name[3], meaning)
    return found


def default_in(text: str, name: str) -> str | None:
    """What stands in brackets behind the name of a field: its default, as ``(10)`` says it."""
    found = re.search(rf"``{name}`` \(([^),:;]+)", text)
    return found[1] if found and re.match(r"-?[\d.]+$|True$|False$|``", found[1]) else None


def markdown(text: str, known: frozenset[str] = frozenset(), link: Link = lambda _: None) -> str:
    """The docstring as Markdown, without a heading."""
    blocks: list[str] = []
    for kind, body in _parts(text, known):
        if kind == "text":
            blocks.append(inline(" ".join(body.split()), link))
        elif kind == "code":
            blocks.append(f"```text\n{body}\n```")
        elif kind == "entry":
            line = "- " + inline(" ".join(body.split()), link)
            if blocks and blocks[-1].startswith("- "):
                blocks[-1] += "\n" + line
            else:
                blocks.append(line)
        elif kind in _LIST:
            items = "\n".join(f"- {_item(' '.join(each.split()), link)}" for each in _items(body))
            blocks.append(f"**{SECTIONS[kind]}**\n\n{items}")
        else:
            blocks.append(f"**{SECTIONS[kind]}**: {inline(' '.join(body.split()), link)}")
    return "\n\n".join(blocks)


def inline(text: str, link: Link = lambda _: None) -> str:
    """Code between single backticks, as a link where there is something to link to; nothing else is markup."""
    parts: list[str] = []
    at = 0
    for found in _CODE.finditer(text):
        parts.append(_escaped(text[at : found.start()]))
        code = found[2].strip()
        target = link(code)
        shown = f"`{code}`" if "`" not in code else f"`` {code} ``"
        parts.append(f"[{shown}]({target})" if target else shown)
        at = found.end()
    return "".join([*parts, _escaped(text[at:])])


def _escaped(text: str) -> str:
    return re.sub(r"([*<\[\]\\]|(?<!\w)_|_(?!\w))", r"\\\1", text)


def _item(text: str, link: Link) -> str:
    """One parameter or error: its name as code."""
    name, colon, meaning = text.partition(": ")
    if not colon or not re.fullmatch(r"[\w., *`]+", name):
        return inline(text, link)
    names = ", ".join(inline(f"`{each.strip('`')}`", link) for each in name.split(", "))
    return f"{names}: {inline(meaning, link)}"


def _items(body: str) -> Iterator[str]:
    """The entries of a section: a line that is not indented begins one."""
    item: list[str] = []
    for line in body.splitlines():
        if item and line.strip() and not line.startswith(" "):
            yield "\n".join(item)
            item = []
        item.append(line)
    if any(each.strip() for each in item):
        yield "\n".join(item)


def _parts(text: str, known: frozenset[str] | None) -> Iterator[tuple[str, str]]:
    """``text``, ``entry``, ``code`` or the name of a section, and the lines of it."""
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        line = lines[at]
        start = at
        at += 1
        if not line.strip():
            continue
        if line in SECTIONS:
            while at < len(lines) and (not lines[at].strip() or lines[at].startswith("    ")):
                at += 1
            yield line, textwrap.dedent("\n".join(lines[start + 1 : at])).strip()
            continue
        if line.startswith("    "):
            while at < len(lines) and (not lines[at].strip() or lines[at].startswith("    ")):
                at += 1
            yield "code", textwrap.dedent("\n".join(lines[start:at])).strip()
            continue
        begins = _begins(line, known)
        while at < len(lines) and lines[at].strip() and lines[at] not in SECTIONS and not _begins(lines[at], known):
            at += 1
        yield "entry" if begins else "text", "\n".join(lines[start:at])


def _begins(line: str, known: frozenset[str] | None) -> bool:
    """Say whether the line begins an entry: each of its names is known, or written as code."""
    found = _ENTRY.match(line)
    if found is None:
        return False
    names = [each[1] or each[3] for each in _WORD.finditer(re.sub(r"\([^)]*\)", "", found[1]))]
    return all("``" in found[1] or (known is not None and name in known) for name in names)


def parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Those that a caller gives: without self, and with each keyword of an ``Unpack[…]`` by itself."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return []
    hidden = ("self", "cls")
    return [each for name, each in signature.parameters.items() if name not in hidden and not name.startswith("_")]
