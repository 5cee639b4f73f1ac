"""Masks what is recognized as a secret in a string, wherever an application's exception has put it.

It errs on the side of taking out too much. A password that nothing around it calls one cannot be recognized.
"""

from __future__ import annotations

import re
from typing import Final

MASK: Final = "****"
_KEYS: Final = "access|account|api|auth|encryption|master|private|secret|shared|signing|storage"
_NAMED: Final = (
    rf"(?:(?:pass(?:word|wd|phrase|code)|pwd|secret|token|credentials?|signature|session[_-]?id"
    rf"|(?:{_KEYS})[_-]?(?:access[_-]?)?key)[\w.-]{{0,40}}|(?<![a-z])(?:sig|otp|pin)(?![a-z]))"
)
_QUOTED: Final = r"[bru]{0,2}\\{0,3}(?P<quote>[\"'])(?:\\.|(?!(?P=quote)).){0,4096}(?:(?P=quote)|$)"
_WORD: Final = r"[^\s,;&)\]}\"'<>]+"
# of an assignment, a header, an item, or the pairs that headers are given as
_IS: Final = r"\\{0,3}[\"']?\]?\s{0,3}(?:=>|:=|[=:]|(?<=[\"'])\s{0,3},)\s{0,3}"
_TORN: Final = 1024  # characters of what may be a part of a secret
_UNBROKEN: Final = re.compile(r"\S*\Z")
_CASELESS: Final = re.DOTALL | re.IGNORECASE
_RULES: Final = tuple(
    (re.compile(pattern, flags), instead)
    for pattern, flags, instead in (
        (r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY.*?(?:-----END [A-Z0-9 ]{0,40}-----|\Z)", re.DOTALL, MASK),
        (r"://[^\s/?#\"'<>:]{0,128}(?::[^\s/?#\"'<>]{0,256})?@", 0, f"://{MASK}@"),
        (r"://[^\s:/?#@\"'<>]{1,128}:[^\s@\"'<>]{0,256}@", 0, f"://{MASK}@"),  # with a / in the password
        (
            rf"(\b(?:proxy-)?authorization|\b(?:set-)?cookie2?)({_IS})(?:{_QUOTED}|[^\r\n]{{1,4096}})",
            _CASELESS,
            rf"\1\2{MASK}",
        ),
        (rf"({_NAMED}{_IS})(?:{_QUOTED}|{_WORD})", _CASELESS, rf"\1{MASK}"),
        (rf"({_NAMED}\s{{1,3}}(?:(?:is|was)\s)?){_QUOTED}", _CASELESS, rf"\1{MASK}"),  # password 'x'
        (rf"((?<=-){_NAMED}\s{{1,3}}){_WORD}", _CASELESS, rf"\1{MASK}"),  # --password x
        (rf"((?<=[<:\w.-]){_NAMED}[^<>]{{0,80}}>)[^<]{{1,4096}}", _CASELESS, rf"\1{MASK}"),  # <password>x
        (
            r"\b(bearer|basic|token|apikey|digest|negotiate)\s{1,3}"
            r"(?:(?=[\w.+/=~-]{0,128}[\d=+/._~-])[\w.+/=~-]{6,}|[a-z]{20,})",
            _CASELESS,
            rf"\1 {MASK}",
        ),
        (r"\beyJ[\w-]{5,}(?:\.[\w-]*){1,4}", 0, MASK),  # JWT
        (r"\b(?:AKIA|ASIA|AGPA|AIDA|AIPA|AROA|ANPA|ANVA|ABIA|ACCA)[A-Z0-9]{12,}\b", 0, MASK),  # AWS, and its secrets
        (r"(?<![\w/+=])(?=\S{0,39}[a-z])(?=\S{0,39}[A-Z])(?=\S{0,39}\d)[A-Za-z0-9/+]{40}(?![\w/+=])", 0, MASK),
        (
            r"\b(?:gh[pousr]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|xox[abeoprs]-[\w-]{8,}|npm_\w{16,}"
            r"|[sr]k_(?:live|test)_\w{8,}|sk-[\w-]{16,}|AIza[\w-]{30,}|ya29\.[\w-]{8,}|SG\.[\w-]{8,}\.[\w-]{8,}"
            r"|hv[bs]\.[\w-]{16,}|pypi-[\w-]{16,}|dop_v1_\w{16,})",
            0,
            MASK,
        ),
    )
)


def redacted_start(text: str, most: int) -> str:
    """The first ``most`` characters of what `redacted` makes of it; the last one says that there were more.

    Where it is very long, no secret is cut in two, and not recognized any more.
    """
    start = redacted(text[: 2 * most])
    if len(text) > 2 * most:
        start = start[:-_TORN] + _UNBROKEN.sub("…", start[-_TORN:])
    return start if len(start) <= most else start[: most - 1] + "…"


def redacted(text: str) -> str:
    """The text with ``****`` in place of each secret that is recognized.

    These are: what stands before the @ of a URL; what is called a password, secret, token, key, credential, signature,
    cookie or Authorization; what follows Bearer or Basic; JWTs; keys of AWS, and those that other services let begin
    in their own way; blocks of private keys.
    """
    for pattern, instead in _RULES:
        text = pattern.sub(instead, text)
    return text
