"""The first page: all dead-letter queues of a broker, those with most letters first."""

from __future__ import annotations

import math
from typing import Final

from redelivery.client.entry.sync import Connection
from redelivery.operate.letters.overview import overview
from redelivery.web.asked import Asked, Templated
from redelivery.web.drawing import curve

_LOOKED_AT: Final = 250  # letters of a queue: somebody waits for the page
_COUNTED: Final = 1000  # letters of a queue that are counted one by one


def queues(asked: Asked, connection: Connection) -> Templated:
    """Show the dead-letter queues: letters, growth since this console looks, the oldest, the most frequent cause."""
    settings, looks = asked.settings, asked.site.looks
    found = overview(connection, settings.config, settings.queues, looked_at=_LOOKED_AT, counted=_COUNTED)
    found = looks.compared(found)
    return Templated(
        "queues.html",
        {
            "broker": connection.metadata.provider_name,
            "protocol": connection.metadata.protocol,
            "found": found,
            "bounded": any(each.letters >= (found.counted or math.inf) for each in found.queues),
            "letters": sum(each.letters for each in found.queues),
            "rows": [(each, curve(looks.curve(each.name))) for each in found.queues],
            "looked_at": _LOOKED_AT,
        },
    )
