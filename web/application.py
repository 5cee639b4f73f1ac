"""The console as an ASGI application: which page is at which address, and what is shown where none can be."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from secrets import compare_digest
from typing import Any, Final
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from redelivery.model.errors import (
    ConfigError,
    ConnectError,
    ConnectionLostError,
    InvalidDestinationError,
    InvalidSelectorError,
    JMSError,
    RequestTimeoutError,
    SecurityError,
    UnsupportedError,
)
from redelivery.web.asked import Answer, Asked, ConnectedPage, ConsoleSettings, Page, Redirected, Templated
from redelivery.web.calls import BusyError, Calls, SlowError
from redelivery.web.guard import FORM, LOOPBACK, Guard, form_token
from redelivery.web.pages import doing
from redelivery.web.pages.letter import letter
from redelivery.web.pages.letters import groups, letters
from redelivery.web.pages.policies import doctor, policies, policy
from redelivery.web.pages.preview import edit, edited, preview
from redelivery.web.pages.queues import queues
from redelivery.web.pages.receipts import receipt, receipts, verified
from redelivery.web.prices import question
from redelivery.web.rendering import link, render
from redelivery.web.runs import LetterRuns

log = logging.getLogger("redelivery.console")
_STATIC: Final = Path(__file__).parent / "static"
_LONGEST: Final = 4 << 20  # bytes of a form: the ids of 10,000 letters, or an edited body
_FIELDS: Final = 100  # of a form
_READ_ONLY: Final = (
    "This console only looks: it was started without --allow-writes (in Python: allow_writes=True), so that nothing "
    "can be replayed, edited, moved or deleted here."
)
Endpoint = Callable[[Request], Awaitable[Response]]


_LOOKING: Final[Mapping[str, ConnectedPage]] = {
    "": queues,
    "groups": groups,
    "letters": letters,
    "letter": letter,
    "export": doing.export,
    "verify": verified,
}
_READING: Final[Mapping[str, Page]] = {
    "receipts": receipts,
    "receipt": receipt,
    "policies": policies,
    "policy": policy,
    "doctor": doctor,
}
_PREPARING: Final[Mapping[str, ConnectedPage]] = {"preview": preview, "edit": edit}
_SHOWING_FORMS: Final[Mapping[str, ConnectedPage]] = {"edited": edited}
_DOING: Final[Mapping[str, Page]] = {"run": doing.run, "undo": doing.undo, "resume": doing.resume}


class _FormError(Exception):
    """A form that is not one of this console's pages, or too large."""


@dataclass(frozen=True, slots=True)
class _Problem:
    """A page about an error: its title, the next step, and the status."""

    title: str
    do: str
    status: int


_PROBLEMS: Final[tuple[tuple[type[Exception], _Problem], ...]] = (
    (
        BusyError,
        _Problem("The console is busy", "It waits for answers of brokers. Load this page again in a few seconds.", 503),
    ),
    (
        SlowError,
        _Problem(
            "The broker does not answer in time",
            "It is slow, or held up. Load this page again; if it stays so, look at the broker itself.",
            504,
        ),
    ),
    (
        RequestTimeoutError,
        _Problem(
            "The broker does not answer in time",
            "It is slow, or held up. Load this page again; if it stays so, look at the broker itself.",
            504,
        ),
    ),
    (
        ConnectionLostError,
        _Problem("The broker has closed the connection", "Load this page again: the console connects anew.", 502),
    ),
    (
        SecurityError,
        _Problem(
            "The broker refuses this user",
            "Look at the user and password with which the console was started, and at what this user may do.",
            502,
        ),
    ),
    (
        ConnectError,
        _Problem(
            "The broker cannot be reached",
            "Look whether it runs, and whether host and port are right. Load this page again when it is there.",
            502,
        ),
    ),
    (
        UnsupportedError,
        _Problem("This broker does not do that", "The text says what it takes, or what to use instead.", 501),
    ),
    (InvalidSelectorError, _Problem("This is not a selector", "Go back and correct it.", 400)),
    (InvalidDestinationError, _Problem("This is not a queue", "Go back, and choose a queue of the list.", 400)),
    (ConfigError, _Problem("This cannot be done as it was asked for", "Go back and correct it.", 400)),
    (JMSError, _Problem("The broker refuses that", "The text is what it says.", 502)),
)


class Application:
    """The pages of one console, and how each of them is asked for."""

    def __init__(self, settings: ConsoleSettings, *, hosts: Iterable[str], token: str | None, calls: Calls) -> None:
        self._settings = settings
        self._calls = calls
        self._runs = LetterRuns()
        routes = [
            Route("/", self._first),
            Route("/login", self._login, methods=["GET", "POST"]),
            Mount("/static", StaticFiles(directory=_STATIC)),
            *(self._route(path, _connected(page)) for path, page in _LOOKING.items()),
            *(self._route(path, page) for path, page in _READING.items()),
            *(self._route(path, _connected(page), writes=True) for path, page in _PREPARING.items()),
            *(self._route(path, _connected(page), writes=True, method="POST") for path, page in _SHOWING_FORMS.items()),
            *(self._route(path, page, writes=True, method="POST") for path, page in _DOING.items()),
        ]
        self.guard = Guard(Starlette(routes=routes), hosts, token)

    def _route(self, path: str, page: Page, *, writes: bool = False, method: str = "GET") -> Route:
        """A page; ``writes``: it changes something, or is of use only where something may be changed."""
        return Route(f"/{{site}}/{path}", self._endpoint(page, writes), methods=[method])

    def _endpoint(self, page: Page, writes: bool) -> Endpoint:
        async def answer(request: Request) -> Response:
            site = self._settings.sites.get(request.path_params["site"])
            if site is None:
                return self._problem(request, _Problem("There is no such broker", "Choose one above.", 404), "")
            if writes and not self._settings.allow_writes:
                return self._problem(request, _Problem("This console is read-only", _READ_ONLY, 403), "")
            fields = dict(request.query_params)
            try:
                if request.method == "POST":
                    fields |= await _form(request)
                asked = Asked(self._settings, site, self._runs, fields)
                found = await self._calls.call(lambda: page(asked))
            except _FormError as error:
                return self._problem(request, _Problem("This form cannot be taken", "Go back.", 403), str(error))
            except JMSError as error:
                problem = next(each for kind, each in _PROBLEMS if isinstance(error, kind))
                if problem.status >= 500:
                    log.warning("%s: %s: %s", site.label, type(error).__name__, error)
                return self._problem(request, problem, str(error))
            match found:
                case Templated(template, values, status):
                    return self._render(request, template, values, status)
                case Redirected(path, query):
                    return RedirectResponse(link(request, site.key, path, **query), 303)
            return found

        return answer

    def _problem(self, request: Request, problem: _Problem, text: str) -> Response:
        values = {"problem": problem, "text": text}
        return self._render(request, "problem.html", values, problem.status)

    def _render(self, request: Request, template: str, values: Mapping[str, Any], status: int = 200) -> Response:
        site = self._settings.sites.get(request.path_params.get("site", ""))
        own = {
            "sites": tuple(self._settings.sites.values()),
            "site": site,
            "may_write": self._settings.allow_writes,
            "has_config": self._settings.config is not None,
            "path": request.scope["path"],
        }
        return render(request, template, {**own, **values}, status)

    async def _first(self, request: Request) -> Response:
        return RedirectResponse(link(request, next(iter(self._settings.sites)), ""), 303)

    async def _login(self, request: Request) -> Response:
        wrong = False
        if request.method == "POST":
            try:
                given = (await _form(request)).get("token", "")
            except _FormError as error:
                return self._problem(request, _Problem("This form cannot be taken", "Go back.", 403), str(error))
            if self.guard.is_token(given.strip()):
                cookie = self.guard.login_cookie(request.scope)
                return RedirectResponse(link(request), 303, {"set-cookie": cookie})
            wrong = True
            log.warning("somebody gave a wrong token at %s", request.client.host if request.client else "?")
        return self._render(request, "login.html", {"wrong": wrong}, 403 if wrong else 200)


def _connected(page: ConnectedPage) -> Page:
    """The same page with a connection of its own; where a look into its queue counts as a delivery, it is asked for."""

    def connected(asked: Asked) -> Answer:
        with asked.site.connect() as connection:
            queues = () if asked.optional("queue") is None else (asked.queue,)
            return question(asked, connection, queues) or page(asked, connection)

    return connected


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form of this console. Raises _FormError: it is none."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise _FormError("only forms of this console are taken")
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > _LONGEST:
            raise _FormError(f"the form has more than {_LONGEST >> 20} MiB")
    try:
        fields = dict(parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_FIELDS))
    except ValueError as error:
        raise _FormError("the form cannot be read") from error
    if not compare_digest(fields.get(FORM, "").encode(), form_token(request.scope).encode()):
        raise _FormError("the form is not of this console, or of another browser: load the page again")
    return fields


def console(
    settings: ConsoleSettings, *, hosts: Iterable[str] = LOOPBACK, token: str | None = None, calls: Calls | None = None
) -> Guard:
    """The ASGI application. Raises ConfigError: there is no broker; or the token is too short."""
    if not settings.sites:
        raise ConfigError("the console needs a broker's URL")
    return Application(settings, hosts=hosts, token=token, calls=calls or Calls()).guard
