"""The syntax of selectors, for lark's LALR parser (JMS 3.1 §3.8.1.1 and §3.8.1.2).

What an operator may stand between is checked in `building`, which can say better what is wrong: `sum` stands here also
where JMS wants an identifier.
"""

from __future__ import annotations

from typing import Final

# A currency sign may begin one of Java's identifiers, as `$` may.
_CURRENCY: Final = r"$\xa2-\xa5\u20a0-\u20c0"
_ENDS: Final = rf"(?![\w{_CURRENCY}])"  # no number or reserved word ends within a word
_EXPONENT: Final = r"(?:e[+-]?[0-9]+)"


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
