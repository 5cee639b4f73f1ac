"""Stands before all pages: who may see them, from which address, and what a browser may do with what it is given.

- A name in ``Host`` that is not the console's own is refused: else a page of somebody else could make its own name
  mean 127.0.0.1, and read this one (DNS rebinding).
- With a token, a browser logs in once; a program sends ``Authorization: Bearer``. It is compared in constant time.
- A POST must come from a page of this console: by ``Origin``, where the browser sends it, and by a hash of a cookie
  that the form repeats (CSRF).
- No script and no style that is not a file of the console is run, whatever a message says (Content-Security-Policy).
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from secrets import compare_digest, token_urlsafe
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from redelivery.model.errors import ConfigError

LOOPBACK: Final = frozenset(("localhost", "127.0.0.1", "::1"))
"""Names of this machine that no other machine can give itself."""
ADDRESSES: Final = "*"
"""Among hosts: any IP address, which no name of somebody else's can stand for."""
FORM: Final = "csrf"
"""The name of the field by which a form shows that it is the console's."""
_SHORTEST: Final = 16  # characters of a token
_FORM_COOKIE: Final = "redelivery-form"
_LOGIN_COOKIE: Final = "redelivery-login"
_RANDOM: Final = re.compile(r"[\w-]{32}")
_MISDIRECTED: Final = 421
_LOGIN: Final = "/login"
_STATIC: Final = "/static/"
_SECURITY: Final = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # with no-referrer a browser sends no Origin either
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Guard:
    """ASGI: the console behind it is reached by these hosts, and with this token where there is one.

    Raises:
        ConfigError: the token is too short.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str] = LOOPBACK, token: str | None = None) -> None:
        if token is not None and len(token) < _SHORTEST:
            raise ConfigError(f"the console's token has {len(token)} characters: take {_SHORTEST} or more")
        self._app = app
        self._hosts = frozenset(each.lower().strip("[]").rstrip(".") for each in hosts)
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request through, or answer it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope = _with_root(scope)
        headers, root = Headers(scope=scope), scope.get("root_path", "")
        cookies = _cookies(headers.get("cookie", ""))
        form = cookies.get(_FORM_COOKIE, "")
        new = not _RANDOM.fullmatch(form)
        scope["redelivery.form"] = form = token_urlsafe(24) if new else form
        secure = "; Secure" if scope.get("scheme") == "https" else ""
        static = scope["path"].removeprefix(root).startswith(_STATIC)

        async def secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                found = MutableHeaders(scope=message)
                found.update(_SECURITY)
                found.setdefault("cache-control", "no-cache" if static else "no-store")
                if new and message["status"] != _MISDIRECTED:
                    cookie = f"{_FORM_COOKIE}={form}; HttpOnly; SameSite=Strict; Path={root or '/'}{secure}"
                    found.append("set-cookie", cookie)
            await send(message)

        answer = self._refusal(scope, headers, cookies)
        await (self._app if answer is None else answer)(scope, receive, secured)

    def _refusal(self, scope: Scope, headers: Headers, cookies: dict[str, str]) -> ASGIApp | None:
        """Return the answer to a request that does not get through."""
        host = headers.get("host", "")
        if not self._is_known(_name_of(host)):
            text = (
                "This console is not known by the name in your browser's address line. Use the address that it printed "
                "when it was started, or start it with --host NAME (in Python: hosts=)."
            )
            return PlainTextResponse(text, _MISDIRECTED)
        if scope["method"] not in ("GET", "HEAD"):
            origin = headers.get("origin")
            if origin is not None and origin.partition("://")[2].lower() != host.lower():
                return PlainTextResponse("This form is not of this console.", 403)
            if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
                return PlainTextResponse("This form is not of this console.", 403)
        root = scope.get("root_path", "")
        path = scope["path"].removeprefix(root)
        if self._token is None or path == _LOGIN or path.startswith(_STATIC) or self._is_logged_in(headers, cookies):
            return None
        if scope["method"] in ("GET", "HEAD"):
            return RedirectResponse(f"{root}{_LOGIN}", 303)
        return PlainTextResponse("Log in first.", 401)

    def _is_known(self, name: str) -> bool:
        return name in self._hosts or (ADDRESSES in self._hosts and _is_address(name))

    def _is_logged_in(self, headers: Headers, cookies: dict[str, str]) -> bool:
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and self.is_token(given.strip()):
            return True
        return compare_digest(cookies.get(_LOGIN_COOKIE, "").encode(), self._login().encode())

    def is_token(self, given: str) -> bool:
        """Check whether it is the token, in a time that does not tell how much of it is right."""
        return self._token is not None and compare_digest(given.encode(), self._token.encode())

    def login_cookie(self, scope: Scope) -> str:
        """The header's value by which a browser is logged in until it is closed."""
        secure = "; Secure" if scope.get("scheme") == "https" else ""
        path = scope.get("root_path", "") or "/"
        return f"{_LOGIN_COOKIE}={self._login()}; HttpOnly; SameSite=Strict; Path={path}{secure}"

    def _login(self) -> str:
        """The value of the cookie; the token cannot be found from it."""
        return hmac.new((self._token or "").encode(), b"redelivery console", hashlib.sha256).hexdigest()


def form_token(scope: Scope) -> str:
    """The value of `FORM` in the forms that this browser gets."""
    return hashlib.sha256(f"form:{scope['redelivery.form']}".encode()).hexdigest()


def _with_root(scope: Scope) -> Scope:
    """The same request by its whole path. A proxy may have taken a prefix away that the application has as its own
    ``root_path``: Starlette's routes below a `Mount` would look for the rest of the path in the wrong place.
    """
    outer, path = scope.get("app_root_path", ""), scope["path"]
    prefix = outer.rstrip("/")
    if f"{path}/".startswith(f"{prefix}/"):
        return scope
    return {**scope, "path": prefix + path, "root_path": prefix + scope["root_path"].removeprefix(outer)}


def _cookies(text: str) -> dict[str, str]:
    try:
        return {name: each.value for name, each in SimpleCookie(text).items()}
    except CookieError:  # of somebody else
        return {}


def _name_of(host: str) -> str:
    name = host[1 : host.find("]")] if host.startswith("[") else host.partition(":")[0]
    return name.lower().rstrip(".")


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
