"""Writes pages: templates in which every value is escaped, and shown as it is where it would act on its reader."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse

from redelivery.model.version import VERSION
from redelivery.operate.shown import number_of, visible
from redelivery.web.guard import FORM, form_token

_UNITS: Final = ((86400, "d"), (3600, "h"), (60, "min"))


def _shown(value: Any) -> Any:
    """A value as a template writes it: text of others is visible before it is escaped; markup is ours."""
    return value if isinstance(value, Markup) else visible(value, lines=True)


def at(moment: datetime | None) -> str:
    """A time in UTC, to the second."""
    return "-" if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def ago(moment: datetime | None) -> str:
    """The time since then, in its largest unit."""
    if moment is None:
        return ""
    seconds = (datetime.now(UTC) - moment.astimezone(UTC)).total_seconds()
    if seconds < 0:
        return "ahead of this clock"
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds >= size), (1, "s"))
    return f"{seconds // size:.0f} {unit} ago"


def number(count: int | None) -> str:
    """A number with spaces that no line is broken at."""
    return "-" if count is None else f"{count:,}".replace(",", "\u202f")


def counted(count: int, one: str, many: str = "") -> str:
    """``1 letter``, ``2 letters``, as `number` has it."""
    return number_of(count, one, many).replace(str(count), number(count), 1)


def plain(destination: object) -> str:
    """A queue by its name alone, as most are; another destination with its scheme."""
    return str(destination).removeprefix("queue://")


_environment = Environment(
    loader=PackageLoader("redelivery.web"),
    autoescape=True,
    finalize=_shown,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_environment.filters |= {"at": at, "ago": ago, "number": number, "counted": counted, "plain": plain}
_environment.tests["printable"] = str.isprintable  # or a form could not hand it on
_environment.globals |= {"version": VERSION}
for _each in ("base.html", "parts.html", "queues.html"):  # now, or the first page would wait for their compilation
    _environment.get_template(_each)


def link(request: Request, *path: str, **query: object) -> str:
    """The address of a page below the console's own root; what is None is left out."""
    said = urlencode({name: value for name, value in query.items() if value is not None})
    place = "/".join(quote(each, safe="") for each in path)
    return f"{request.scope.get('root_path', '')}/{place}" + (f"?{said}" if said else "")


def render(request: Request, template: str, values: Mapping[str, Any], status: int = 200) -> HTMLResponse:
    """The response that a template makes of these values."""

    def to(*path: str, **query: object) -> str:
        return link(request, *path, **query)

    def hidden(name: str, value: object) -> Markup:
        return Markup('<input type="hidden" name="{}" value="{}">').format(name, value)

    page = _environment.get_template(template)
    form = hidden(FORM, form_token(request.scope))
    return HTMLResponse(page.render({"to": to, "hidden": hidden, "form_token": form, **values}), status)
