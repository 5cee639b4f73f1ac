"""Receipts: what a run has done to which letters, so that it can be proved, undone, and gone on with after a kill.

A receipt is a file of JSON lines: first what was asked for, by whom, where and when; then each letter that was meant;
then each batch before its commit, and a line more when the commit was confirmed. So a kill leaves at most one batch
about which the broker has to be asked: of a transaction either all letters are where they were, or none is.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import socket
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from redelivery.client.entry.sync import Connection
from redelivery.model.destinations import Destination, read_destination
from redelivery.model.errors import ConfigError
from redelivery.model.messages import Message
from redelivery.model.version import version
from redelivery.operate.letters.records import to_record
from redelivery.operate.letters.routes import MARKS, Leaving
from redelivery.policies.dead_letter_headers import is_broker_owned

FORMAT: Final = 1
_HASHED: Final = ("body_type", "body", "raw_body", "correlation_id", "type")


@dataclass(frozen=True, slots=True)
class ReceiptEntry:
    """One letter of a receipt.

    ``id``: that it had; None: none. ``content``: a hash of what its sender wrote, and ``sent`` of what was sent for it.
    ``to``: where it went; None: nowhere. ``letter``: what is needed to put it back as it was; None: it was not kept.
    ``sure``: its batch was confirmed. ``undone``: it was put back; None: perhaps.
    """

    id: str | None
    content: str
    sent: str
    to: Destination | None
    letter: Mapping[str, Any] | None
    sure: bool = False
    undone: bool | None = False


@dataclass(slots=True)
class RunReceipt:
    """A receipt as it was read.

    ``run``: the name of the run. ``command``: ``replay``, ``move``, ``edit`` or ``purge``. ``queue``: from which the
    letters were taken. ``to``: where they were to go, if that was asked for. ``meant``: the letters that were, by id,
    which several may share; ``edited``: what each edited one was to become, by id. ``entries``: of the letters that
    have left, or perhaps, in ``batches``; one for each letter, also where a batch was tried again.
    """

    path: Path
    head: Mapping[str, Any]
    meant: Counter[str | None] = field(default_factory=Counter)
    edited: dict[str | None, Mapping[str, Any]] = field(default_factory=dict)
    entries: list[ReceiptEntry] = field(default_factory=list)
    batches: int = 0

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

    def check_broker(self, connection: Connection) -> None:
        """Raises ConfigError: the connection is to a broker of another kind."""
        if self.head["broker"] != connection.metadata.provider_name:
            raise ConfigError(
                f"{self.path} is of {self.head['broker']} at {self.head['at']}, "
                f"and this is {connection.metadata.provider_name}: give the --url of that broker"
            )


class ReceiptWriter:
    """Writes a receipt, or goes on with one; each line is with the system before the step that it announces.

    Raises:
        ConfigError: the file cannot be written; nothing has been moved then.
    """

    def __init__(self, path: Path, *, batches: int = 0, keep: bool = True) -> None:
        self.path = path
        self._keep = keep
        self._batch = batches
        try:
            _drop_cut_line(path)
            file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)  # it may hold what letters say
            self._file = os.fdopen(file, "a", encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"the receipt cannot be written: {error}; nothing was moved") from error

    @classmethod
    def begun(
        cls,
        folder: Path,
        connection: Connection,
        *,
        run: str,
        command: str,
        queue: Destination,
        to: Destination | None,
        keep: bool = True,
        **asked: Any,
    ) -> ReceiptWriter:
        """Begin one in a folder, which is made. ``keep``: the originals, where nothing else has them."""
        now = datetime.now(UTC)
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise ConfigError(f"--receipts: {error}; nothing was moved") from error
        written = cls(folder / f"{now:%Y%m%dT%H%M%SZ}-{command}-{run}.jsonl", keep=keep)
        written.write(
            {
                "receipt": FORMAT,
                "command": command,
                "run": run,
                "who": f"{_user()}@{socket.gethostname()}",
                "when": now.isoformat(timespec="seconds"),
                "broker": connection.metadata.provider_name,
                "at": connection.url,
                "queue": str(queue),
                "to": None if to is None else str(to),
                "asked": {name: value for name, value in asked.items() if value is not None},
                "redelivery": version(),
            }
        )
        return written

    def write(self, line: Mapping[str, Any]) -> None:
        """Write a line."""
        self._file.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._file.flush()

    def plan(self, ids: Iterable[str | None], edited: Mapping[str | None, Mapping[str, Any]] | None = None) -> None:
        """Write which letters are meant, and what becomes of each that is edited."""
        for each in ids:
            self.write({"planned": each} if edited is None else {"planned": each, "edited": edited[each]})

    def before(self, letters: Sequence[tuple[Message, Leaving | None]]) -> None:
        """Write which letters the next commit takes."""
        self._batch += 1
        self.write({"batch": self._batch, "letters": [self._entry(*each) for each in letters]})

    def after(self) -> None:
        """Write that it was confirmed."""
        self.write({"done": self._batch})

    def end(self, moved: int) -> None:
        """Write that the run has come to its end."""
        self.write({"end": datetime.now(UTC).isoformat(timespec="seconds"), "letters": moved})

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _entry(self, letter: Message, leaving: Leaving | None) -> dict[str, Any]:
        record = to_record(letter)
        content = _content(record)
        found = {"id": letter.message_id, "content": content}
        if leaving is not None:
            found |= {"to": str(leaving.destination)}
            sent = content_of(leaving.message)
            if sent != content:
                return {**found, "sent": sent, "letter": record}
            return {**found, "letter": {"dead_letter": record.get("dead_letter")}}
        return {**found, "letter": record} if self._keep else found


def state_folder() -> Path:
    """The folder of what is remembered between commands, by the XDG Base Directory Specification."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "redelivery"


def read_receipt(path: Path) -> RunReceipt:
    """Read a receipt; a last line that a kill has cut short is left out.

    Raises:
        ConfigError: it cannot be read, or is not a receipt; the text has the line.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(str(error)) from error
    del lines[-1]  # what follows the last end of a line is nothing, or cut short
    found: _Reading | None = None
    for number, text in enumerate(lines, 1):
        try:
            line = json.loads(text)
            if found is None:
                found = _Reading(_head(path, line))
            else:
                found.add(line)
        except ConfigError:
            raise
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise ConfigError(f"{path}, line {number}: this is not a line of a receipt") from error
    if found is None:
        raise ConfigError(f"{path} is empty, and no receipt")
    return found.receipt


def content_of(message: Message) -> str:
    """A hash of what the sender of a message wrote: its body and its kind, its properties, correlation id and type."""
    return _content(to_record(message))


def _content(record: Mapping[str, Any]) -> str:
    said = {name: record[name] for name in _HASHED if name in record}
    own = {name: each for name, each in record["properties"].items() if not is_broker_owned(name) and name not in MARKS}
    text = json.dumps([said, own], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _head(path: Path, line: Mapping[str, Any]) -> RunReceipt:
    if line["receipt"] != FORMAT:
        raise ConfigError(f"{path}: it is a receipt of version {line['receipt']}, and this redelivery reads {FORMAT}")
    for name in ("run", "command", "queue", "to", "broker", "at"):
        line[name]
    return RunReceipt(path, line)


class _Reading:
    """A receipt, line by line."""

    def __init__(self, receipt: RunReceipt) -> None:
        self.receipt = receipt
        self._batches: dict[int, list[int]] = {}  # places of the entries
        self._unsure: dict[str | None, list[int]] = {}  # the same, by id, of batches that were not confirmed

    def add(self, line: Mapping[str, Any]) -> None:
        """Read a line. Raises KeyError, IndexError, TypeError: it is none of a receipt."""
        receipt = self.receipt
        if "planned" in line:
            receipt.meant[line["planned"]] += 1
            if "edited" in line:
                receipt.edited[line["planned"]] = line["edited"]
        elif "batch" in line:
            receipt.batches = line["batch"]
            self._batches[line["batch"]] = self._places([_read_entry(each) for each in line["letters"]])
        elif "done" in line:
            places = self._batches[line["done"]]
            self._mark(places, sure=True)
            for each in places:
                self._unsure[receipt.entries[each].id].remove(each)
        elif "undoing" in line:
            self._mark(line["undoing"], undone=None)
        elif "undone" in line:
            self._mark(line["undone"], undone=True)
        elif "end" not in line:
            raise KeyError(*line)

    def _places(self, batch: list[ReceiptEntry]) -> list[int]:
        """Put each where the letter of its id is whose batch was not confirmed, else behind the others."""
        entries, places = self.receipt.entries, []
        for entry in batch:
            before = self._unsure.get(entry.id)
            place = before.pop(0) if before and entry.id is not None else len(entries)
            entries[place : place + 1] = [entry]
            places.append(place)
        for each in places:
            self._unsure.setdefault(entries[each].id, []).append(each)
        return places

    def _mark(self, places: Iterable[int], **changed: Any) -> None:
        entries = self.receipt.entries
        for each in places:
            entries[each] = replace(entries[each], **changed)


def _read_entry(line: Mapping[str, Any]) -> ReceiptEntry:
    to = line.get("to")
    return ReceiptEntry(
        line["id"],
        line["content"],
        line.get("sent", line["content"]),
        None if to is None else read_destination(to),
        line.get("letter"),
    )


def _drop_cut_line(path: Path) -> None:
    """Take away what a kill has left of a line."""
    if path.exists() and not (text := path.read_bytes()).endswith(b"\n"):
        os.truncate(path, text.rfind(b"\n") + 1)


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user may have no name
        return "unknown"
