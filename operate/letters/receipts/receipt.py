"""Receipts as they are read.

A receipt is a file of JSON lines: first what was asked for, by whom, where and when; then each letter that was meant;
then each batch before its commit, and a line more when the commit was confirmed. So a kill leaves at most one batch
about which the broker has to be asked: of a transaction either all letters are where they were, or none is.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from redelivery.client.entry.sync import Connection
from redelivery.model.content.bodies import KnownBody
from redelivery.model.destinations import Destination, read_destination
from redelivery.model.errors import ConfigError
from redelivery.model.messages import Message
from redelivery.operate.letters.records import to_content
from redelivery.operate.letters.routes import MARKS, REPLAYED
from redelivery.policies.dead_letter_headers import RUN, is_broker_owned

FORMAT: Final = 1
_HASHED: Final = ("body_type", "body", "correlation_id", "type")
_hashed: Final = json.JSONEncoder(sort_keys=True, ensure_ascii=True).encode


@dataclass(frozen=True, slots=True)
class ReceiptEntry:
    """One letter of a receipt.

    ``id``: that it had; None: none. ``content``: a hash of what its sender wrote, and ``sent`` of what was sent for it.
    ``to``: where it went; None: nowhere. ``letter``: what is needed to put it back as it was; None: it was not kept.
    ``sure``: its batch was confirmed. ``dropped``: it was not, as `resume` has found. ``undone``: it was put back;
    None: perhaps; then the letter says so, or ``before`` is how many letters of this content were there before.
    ``alone``: it was sent and then acknowledged, not both in a transaction.
    """

    id: str | None
    content: str
    sent: str
    to: Destination | None
    letter: Mapping[str, Any] | None
    sure: bool = False
    dropped: bool = False
    undone: bool | None = False
    before: int | None = None
    alone: bool = False


@dataclass(frozen=True, slots=True)
class PlannedLetter:
    """A letter that was meant.

    ``id``: that it had. ``content``: a hash of what its sender wrote, where its id alone does not name it; else None.
    ``edited``: what was to be sent, where it was edited or imported. ``there``: of one without an id, how many letters
    without an id had this content.
    """

    id: str | None
    content: str | None = None
    edited: Mapping[str, Any] | None = None
    there: int = 0

    @property
    def name(self) -> str:
        """A name that only letters with the same id, or without one those with the same content, have."""
        return name_of(self.id, self.content or "")


@dataclass(slots=True)
class RunReceipt:
    """A receipt as it was read.

    ``run``: the name of the run. ``command``: ``replay``, ``move``, ``edit``, ``purge`` or ``import``. ``queue``: from
    which the letters were taken; of an import that to which they were sent. ``to``: where they were to go, if that was
    asked for. ``planned``: the letters that were meant, in order. ``entries``: of the letters that have left, or
    perhaps, in ``batches``. ``ended``: the run came to its end.
    """

    path: Path
    head: Mapping[str, Any]
    planned: list[PlannedLetter] = field(default_factory=list)
    entries: list[ReceiptEntry] = field(default_factory=list)
    batches: int = 0
    ended: bool = False

    @property
    def run(self) -> str:
        """The name of the run."""
        return str(self.head["run"])

    @property
    def command(self) -> str:
        """``replay``, ``move``, ``edit`` or ``purge``."""
        return str(self.head["command"])

    @property
    def queue(self) -> Destination:
        """The queue from which the letters were taken."""
        return read_destination(self.head["queue"])

    @property
    def to(self) -> Destination | None:
        """The destination that was asked for; None: where each came from, or nowhere."""
        return None if self.head["to"] is None else read_destination(self.head["to"])

    @property
    def mark(self) -> str | None:
        """The property by which what was sent says of which run it is; None: it does not."""
        if self.command in ("replay", "edit"):
            return REPLAYED
        return RUN if self.head["asked"].get("marked") else None

    def is_of(self, letter: Message) -> bool:
        """Check whether a letter at the target is of this run, as far as it says that."""
        return self.mark is None or letter.properties.get(self.mark) == self.run

    def name_back(self, number: int) -> str:
        """The value of `RUN` on a letter that is put back."""
        return f"{self.run}/{number}"

    def number_back(self, letter: Message) -> int | None:
        """The number of a letter that was put back where it was; None: it was not, or by the undoing of another run."""
        run, _, number = str(letter.properties.get(RUN, "")).partition("/")
        return int(number) if run == self.run and number.isdecimal() else None

    @property
    def places(self) -> tuple[Destination, ...]:
        """The queues that say where its letters are: that from which they were taken, and those to which they went."""
        return tuple(dict.fromkeys([self.queue, *(each.to for each in self.entries if each.to is not None)]))

    @property
    def letters(self) -> int:
        """The number of letters that have left, or perhaps."""
        return sum(not each.dropped for each in self.entries)

    @property
    def skipped(self) -> int:
        """The number of letters that stayed, as they had been replayed too often."""
        return len(self.head.get("asked", {}).get("skipped", ()))

    @property
    def unseen(self) -> bool:
        """True: nobody had looked into the queue, so that all of it was meant."""
        return self.head.get("letters", 0) is None

    @property
    def unplanned(self) -> bool:
        """True: it was killed while it was planned, so that nothing has left."""
        return not self.entries and len(self.planned) < (self.head.get("letters") or 0)

    def check_broker(self, connection: Connection) -> None:
        """Raises ConfigError: the connection is to a broker of another kind."""
        if self.head["broker"] != connection.metadata.provider_name:
            raise ConfigError(
                f"{self.path} is of {self.head['broker']} at {self.head['at']}, "
                f"and this is {connection.metadata.provider_name}: give the --url of that broker"
            )


def read_receipt(path: Path) -> RunReceipt:
    """Read a receipt; a last line that a kill has cut short is left out.

    Raises:
        ConfigError: it cannot be read, or is not a receipt; the text has the line.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    del lines[-1]  # what follows the last end of a line is nothing, or cut short
    found: RunReceipt | None = None
    batches: dict[int, range] = {}
    for number, text in enumerate(lines, 1):
        try:
            line = json.loads(text)
            if found is None:
                found = _head(path, line)
            else:
                _add(found, batches, line)
        except ConfigError:
            raise
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise ConfigError(f"{path}, line {number}: this is not a line of a receipt") from error
    if found is None:
        raise ConfigError(f"{path} is empty, and no receipt")
    return found


def name_of(id: str | None, content: str) -> str:
    """Return the name of a letter: its id, or else what its sender wrote."""
    return content if id is None else f"id {id}"


def content_of(message: Message) -> str:
    """A hash of what the sender of a message wrote: its body and its kind, its properties, correlation id and type."""
    return content_of_record(to_content(message))


def contents_of(letter: Message, sent: Message) -> tuple[str, str]:
    """`content_of` a letter, and of what is sent for it: the same where that is its copy, whose body nobody reads."""
    said = to_content(letter)
    content = content_of_record(said)
    is_copy = not isinstance(sent.carried(), KnownBody) and _own(said).keys() <= sent.properties.keys()
    return content, content if is_copy else content_of(sent)


def as_bytes(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record of a letter whose body cannot be read with its bytes instead: so it can be put back."""
    found = dict(record)
    if found.pop("unreadable", None) is not None:
        found |= {"body_type": "bytes", "body": {"$bytes": found.pop("raw_body")}}
    return found


def content_of_record(record: Mapping[str, Any]) -> str:
    """The same of a message as `to_record` has it."""
    record = as_bytes(record)
    said = {name: record[name] for name in _HASHED}
    if record["body_type"] == "text":  # a management shows these as bytes
        text = record["body"].encode(errors="surrogatepass")
        said |= {"body_type": "bytes", "body": {"$bytes": base64.b64encode(text).decode()}}
    whole = _hashed([said, {name: _as_text(each) for name, each in _own(record).items()}])
    return hashlib.sha256(whole.encode()).hexdigest()[:32]


def _own(record: Mapping[str, Any]) -> dict[str, Any]:
    """The properties that its sender wrote."""
    said = record["properties"].items()
    return {name: each for name, each in said if not is_broker_owned(name) and name not in MARKS}


def _as_text(value: Any) -> str:
    """A property without its type, which it can lose on its way: over STOMP each is a string."""
    if isinstance(value, dict):
        ((_, value),) = value.items()
    return str(value).lower() if isinstance(value, bool) else str(value)


def _head(path: Path, line: Mapping[str, Any]) -> RunReceipt:
    if line["receipt"] != FORMAT:
        raise ConfigError(f"{path}: it is a receipt of version {line['receipt']}, and this redelivery reads {FORMAT}")
    for name in ("run", "command", "queue", "to", "broker", "at"):
        line[name]
    return RunReceipt(path, line)


def _add(receipt: RunReceipt, batches: dict[int, range], line: Mapping[str, Any]) -> None:
    entries = receipt.entries
    if "planned" in line:
        receipt.planned.append(
            PlannedLetter(line["planned"], line.get("content"), line.get("edited"), line.get("there", 0))
        )
    elif "batch" in line:
        first = len(entries)
        entries.extend(_read_entry(each, alone=bool(line.get("alone"))) for each in line["letters"])
        batches[line["batch"]] = range(first, len(entries))
        receipt.batches = line["batch"]
    elif "done" in line:
        _mark(entries, batches[line["done"]], sure=True)
    elif "undoing" in line:
        for number, before in zip(line["undoing"], line.get("before", [None] * len(line["undoing"])), strict=True):
            _mark(entries, (number,), undone=None, before=before)
    elif "dropped" in line:
        _mark(entries, line["dropped"], dropped=True)
    elif "finished" in line:
        _mark(entries, line["finished"], sure=True)
    elif "undone" in line:
        _mark(entries, line["undone"], undone=True)
    elif "end" in line:
        receipt.ended = True
    else:
        raise KeyError(*line)


def _mark(entries: list[ReceiptEntry], numbers: Iterable[int], **changed: Any) -> None:
    for each in numbers:
        entries[each] = replace(entries[each], **changed)


def _read_entry(line: Mapping[str, Any], *, alone: bool) -> ReceiptEntry:
    to = line.get("to")
    return ReceiptEntry(
        line["id"],
        line["content"],
        line.get("sent", line["content"]),
        None if to is None else read_destination(to),
        line.get("letter"),
        alone=alone,
    )
