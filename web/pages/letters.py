"""The letters of a queue: in groups that failed alike, and one after the other."""

from __future__ import annotations

from itertools import islice
from typing import Final

from redelivery.client.entry.sync import Connection
from redelivery.model.errors import ConfigError
from redelivery.operate.letters.fingerprints import WAYS
from redelivery.operate.letters.groups import failed_at
from redelivery.operate.letters.selection import Selection
from redelivery.operate.letters.states.resolved import Resolutions
from redelivery.operate.views.reading import read
from redelivery.operate.views.timeline import grouped
from redelivery.web.asked import MOST, PAGE, Asked, Templated
from redelivery.web.drawing import bars

_PAGES: Final = MOST // PAGE


def groups(asked: Asked, connection: Connection) -> Templated:
    """Show the groups of the letters at the head of a queue, `MOST` at most."""
    by = asked.optional("by") or "cause"
    if by not in WAYS:
        raise ConfigError(f"by={by}: groups are by {', '.join(WAYS)}")
    found = read(connection, Selection(asked.queue, asked.optional("where")), MOST)
    resolved = Resolutions(asked.settings.state).read()
    return Templated(
        "groups.html",
        {
            "queue": asked.queue,
            "where": asked.optional("where"),
            "by": by,
            "ways": WAYS,
            "rows": [(each, bars(curve)) for each, curve in grouped(found.letters, by, resolved)],
            "found": found,
            "most": MOST,
        },
    )


def letters(asked: Asked, connection: Connection) -> Templated:
    """Show a page of the letters of a queue, or of a group of them; what is behind `MOST` letters is not read."""
    selection = Selection(asked.queue, asked.optional("where"), asked.optional("group"))
    page = asked.number("page", 1, _PAGES)
    first = (page - 1) * PAGE
    if selection.group is None and selection.where is None:
        seen = list(islice(selection.browse(connection), first, first + PAGE + 1))
        cut = page == _PAGES and len(seen) > PAGE
    else:
        found = read(connection, selection, MOST)
        seen, cut = list(found.letters[first : first + PAGE + 1]), found.cut
    return Templated(
        "letters.html",
        {
            "queue": asked.queue,
            "where": selection.where,
            "group": selection.group,
            "rows": [(first + at, each, failed_at(each)) for at, each in enumerate(seen[:PAGE], 1)],
            "page": page,
            "more": len(seen) > PAGE and page < _PAGES,
            "cut": cut,
            "most": MOST,
        },
    )
