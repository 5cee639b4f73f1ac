"""The tree of a selector, by lark's LALR parser (JMS 3.1 §3.8.1.1 and §3.8.1.2), or where it is wrong, or too long or
nested too deeply.

What an operator may stand between is checked in `building`, which can say better what is wrong: `sum` stands here also
where JMS wants an identifier.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, TypeAlias

from redelivery.model.errors import InvalidSelectorError

if TYPE_CHECKING:
    from lark import Lark, Token, Tree

    Branch: TypeAlias = Tree[Token]
    Node: TypeAlias = Branch | Token | None

# A currency sign may begin one of Java's identifiers, as `$` may.
_CURRENCY: Final = r"$\xa2-\xa5\u20a0-\u20c0"
_ENDS: Final = rf"(?![\w{_CURRENCY}])"  # no number or reserved word ends within a word
_EXPONENT: Final = r"(?:e[+-]?[0-9]+)"
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
_AROUND: Final = 60  # characters that are shown before and after the place


def _reserved(word: str) -> str:
    return rf"/{word}{_ENDS}/i"


GRAMMAR: Final = rf"""
?start: disjunction
?disjunction: conjunction (_OR conjunction)*
?conjunction: _negated (_AND _negated)*
_negated: negation | _condition
negation: NOT _negated
_condition: sum | comparison | between | like | membership | nullness
comparison: sum (EQUAL | UNEQUAL | LESS | LESS_OR_EQUAL | GREATER | GREATER_OR_EQUAL) sum
between: sum [NOT] _BETWEEN sum _AND sum
like: sum [NOT] _LIKE STRING [_ESCAPE STRING]
membership: sum [NOT] _IN "(" STRING ("," STRING)* ")"
nullness: sum _IS [NOT] _NULL
?sum: product ((PLUS | MINUS) product)*
?product: _factor ((TIMES | DIVIDED_BY) _factor)*
_factor: signed | _atom
signed: (PLUS | MINUS) _factor
_atom: identifier | string | exact | approximate | truth | group
identifier: IDENTIFIER
string: STRING
exact: EXACT
approximate: APPROXIMATE
truth: TRUE | FALSE
group: "(" disjunction ")"

_AND.3: {_reserved("and")}
_OR.3: {_reserved("or")}
NOT.3: {_reserved("not")}
_BETWEEN.3: {_reserved("between")}
_LIKE.3: {_reserved("like")}
_ESCAPE.3: {_reserved("escape")}
_IN.3: {_reserved("in")}
_IS.3: {_reserved("is")}
_NULL.3: {_reserved("null")}
TRUE.3: {_reserved("true")}
FALSE.3: {_reserved("false")}
IDENTIFIER.1: /(?:[^\W0-9]|[{_CURRENCY}])[\w{_CURRENCY}]*/
APPROXIMATE.2: /(?:(?:[0-9]+\.[0-9]*|\.[0-9]+){_EXPONENT}?|[0-9]+{_EXPONENT})[fd]?{_ENDS}|[0-9]+[fd]{_ENDS}/i
EXACT.2: /(?:0x[0-9a-f]+|[0-9]+)l?{_ENDS}/i
STRING: /'(?:[^']|'')*'/
EQUAL: "="
UNEQUAL: "<>"
LESS: "<"
LESS_OR_EQUAL: "<="
GREATER: ">"
GREATER_OR_EQUAL: ">="
PLUS: "+"
MINUS: "-"
TIMES: "*"
DIVIDED_BY: "/"
%ignore /[ \t\f\r\n]+/
"""


def parse_tree(text: str) -> Branch:
    """The tree of a selector, by the rules of `GRAMMAR`.

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


def invalid(text: str, position: int, problem: str) -> InvalidSelectorError:
    """The error, to be raised; ``position`` counts from 0, and the length of ``text`` is its end."""
    before, after = text[:position], text[position:]
    line = before.rpartition("\n")[2]
    head = line if len(line) <= _AROUND else "…" + line[-_AROUND:]
    rest = after.partition("\n")[0]
    tail = rest if len(rest) <= _AROUND else rest[:_AROUND] + "…"
    where = f"at character {position + 1}" if after else "at its end"
    shown = (head + tail).translate(_BLANKS)
    return InvalidSelectorError(
        f"the selector is not valid {where}: {problem}\n    {shown}\n    {' ' * len(head)}^", position=position
    )


_BLANKS: Final = {code: " " for code in (*range(32), 127)}  # the caret stands below what it points at
