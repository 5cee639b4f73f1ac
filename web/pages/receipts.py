"""The receipts of runs: what was done, whether it is so, and how it is undone or gone on with."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

from redelivery.client.entry.sync import Connection
from redelivery.model.errors import ConfigError
from redelivery.operate.letters.receipts import proving
from redelivery.operate.letters.receipts.receipt import RunReceipt, read_receipt
from redelivery.web.asked import Asked, Templated
from redelivery.web.prices import question
from redelivery.web.sites import address_of

_LISTED: Final = 200
_NAME: Final = re.compile(r"[\w-][\w.-]{0,200}\.jsonl", re.ASCII)
_HEAD: Final = 64 << 10  # bytes of a first line
_SAID: Final = (
    ("unread", "where they were sent to, not yet received"),
    ("gone", "received, expired or deleted since"),
    ("hidden", "sent where nobody can look"),
    ("still", "where they were: their batch was not committed"),
    ("left", "meant, and not yet taken: resume goes on with them"),
    ("undone", "put back by undo"),
    ("back", "dead letters again"),
    ("returned", "where they were, although their commit was confirmed"),
    ("doubled", "in both places: resume or undo takes one of the two away"),
)


def receipts(asked: Asked) -> Templated:
    """Show the newest receipts of the folder."""
    folder = asked.settings.receipts
    found = sorted(folder.glob("*.jsonl"), reverse=True) if folder.is_dir() else []
    rows = [(each.name, _head(each)) for each in found[:_LISTED]]
    return Templated("receipts.html", {"folder": folder, "rows": rows, "more": len(found) > _LISTED})


def receipt(asked: Asked) -> Templated:
    """Show one receipt, and how far its run is."""
    found = opened(asked)
    run = asked.runs.of(found.path.name)
    return Templated("receipt.html", {**_values(asked, found), "run": run, "proof": None})


def verified(asked: Asked, connection: Connection) -> Templated:
    """Show where the letters of a receipt are now."""
    found = opened(asked)
    dear = question(asked, connection, found.places)
    if dear is not None:
        return dear
    proof = proving.verify(connection, found)
    said = [(text, count) for name, text in _SAID if (count := getattr(proof, name))]
    run = asked.runs.of(found.path.name)
    return Templated("receipt.html", {**_values(asked, found), "run": run, "proof": proof, "said": said})


def opened(asked: Asked) -> RunReceipt:
    """The receipt that is meant. Raises ConfigError: there is none of this name in the folder, or it cannot be read."""
    name = asked.text("name")
    path = asked.settings.receipts / name
    if not _NAME.fullmatch(name) or not path.is_file():
        raise ConfigError(f"there is no receipt {name[:200]} in the folder of this console")
    return read_receipt(path)


def _values(asked: Asked, found: RunReceipt) -> dict[str, Any]:
    sure = sum(each.sure for each in found.entries)
    undone = sum(bool(each.undone) for each in found.entries)
    kept = found.command != "purge" or "kept" in found.head["asked"]
    return {
        "receipt": found,
        "meant": len(found.planned),
        "sure": sure,
        "undone": undone,
        "may_undo": kept and sure > undone,
        "unfinished": sure < len(found.planned),
        "elsewhere": address_of(str(found.head["at"])) not in asked.site.label,
    }


def _head(path: Path) -> dict[str, Any] | None:
    """The first line of a receipt; None: it is not one."""
    try:
        with path.open("rb") as file:
            found = json.loads(file.readline(_HEAD))
        return {name: str(found[name]) for name in ("command", "queue", "when", "who", "at")}
    except (OSError, ValueError, KeyError, TypeError):
        return None
