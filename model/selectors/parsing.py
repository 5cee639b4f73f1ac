"""The tree of a selector, by lark; refused are what is no selector, and what is too long or nested too deeply."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, TypeAlias

from redelivery.model.selectors.grammar import GRAMMAR
from redelivery.model.selectors.problems import invalid

if TYPE_CHECKING:
    from lark import Lark, Token, Tree

    Branch: TypeAlias = Tree[Token]
    Node: TypeAlias = Branch | Token | None

LONGEST: Final = 32_768  # characters
DEEPEST: Final = 100  # operators and brackets around each other: each takes a frame of Python's stack
_MEANT: Final = {  # what other languages write
    '"': "a string is written in single quotes: 'eu'",
    "!": "write <> for 'not equal', and NOT for 'not'",
    "&": "write AND",
    "|": "write OR",
    "%": "JMS has no remainder; in the pattern of LIKE, % stands between the quotes",
    "`": "a name is written without quotes",
    "[": "a list is written in round brackets: IN ('a', 'b')",
    "#": "JMS has no comments",
    ";": "a selector is one condition, without a semicolon",
}


def parse_tree(text: str) -> Branch:
    """The tree of a selector, by the rules of `grammar`.

    Raises:
        InvalidSelectorError: it does not follow the grammar; the error shows where.
    """
    from lark import Token, UnexpectedCharacters, UnexpectedToken

    if len(text) > LONGEST:
        raise invalid(text, LONGEST, f"it has {len(text)} characters, and {LONGEST} are allowed")
    try:
        tree = _lark().parse(text)
    except UnexpectedCharacters as error:
        at = error.pos_in_stream or 0
        raise invalid(text, at, _wrong_character(text[at])) from None
    except UnexpectedToken as error:
        found = error.token  # of `expected`, a table's row for many places, `accepts` is what can stand at this one
        if found.type == "$END":
            raise invalid(text, len(text), _unfinished(error.accepts)) from None
        raise invalid(text, found.start_pos or 0, _wrong_token(text, found, error.accepts)) from None
    if isinstance(tree, Token):
        raise AssertionError(f"a rule of the grammar keeps a bare token: {tree!r}")
    deep = _too_deep(tree)
    if deep is not None:
        raise invalid(text, position(deep), f"it is nested more than {DEEPEST} deep")
    return tree


def position(node: Node) -> int:
    """The place where a part of the tree begins, counted from 0: at the first word that is kept of it."""
    while node is not None and not isinstance(node, str):
        node = next(child for child in node.children if child is not None)
    return (node and node.start_pos) or 0


@cache
def _lark() -> Lark:
    from lark import Lark  # not before the first selector: it takes a tenth of a second

    return Lark(GRAMMAR, parser="lalr", lexer="basic", maybe_placeholders=True)


def _too_deep(tree: Branch) -> Branch | None:
    level = [tree]
    for _ in range(DEEPEST):
        level = [child for node in level for child in node.children if child is not None and not isinstance(child, str)]
        if not level:
            return None
    return level[0]


def _wrong_character(character: str) -> str:
    if character == "'":
        return "this string has no end: a quote within a string is written twice, 'it''s'"
    if character.isdigit():
        return "this number runs into a word: put a space behind it, or write the name without a digit before it"
    return _MEANT.get(character, f"{character!r} has no meaning outside of a string")


def _wrong_token(text: str, found: Token, expected: set[str]) -> str:
    before = text[: found.start_pos].rstrip()
    if found == "=" and before.endswith("="):
        return "write = once"
    if found.type == "EQUAL" and before.endswith((">", "<")):
        return f"write {before[-1]}= in one word"
    if found.type == "_NULL":
        return "NULL equals nothing: write IS NULL or IS NOT NULL"
    wanted = _wanted(expected)
    return f"{str(found)!r} cannot stand here" + (f", but {wanted} can" if wanted else "")


def _unfinished(expected: set[str]) -> str:
    wanted = _wanted(expected)
    return "more is needed" + (f": {wanted}" if wanted else "")


def _wanted(expected: set[str]) -> str:
    for terminal, words in (
        ("IDENTIFIER", "a name, a value or a bracket"),
        ("STRING", "a string in single quotes"),
        ("LPAR", "a list in round brackets"),
        ("COMMA", "a comma or a closing bracket"),
        ("EQUAL", "an operator"),
        ("_LIKE", "LIKE, IN or BETWEEN"),
        ("_NULL", "NULL"),
        ("RPAR", "a closing bracket, AND or OR"),
        ("_OR", "AND or OR"),
        ("_AND", "AND"),
    ):
        if terminal in expected:
            return words
    return ""
