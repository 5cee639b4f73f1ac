"""Writes receipts."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from redelivery.client.entry.sync import Connection
from redelivery.model.destinations import Destination
from redelivery.model.errors import ConfigError, JMSError
from redelivery.model.messages import Message
from redelivery.model.version import VERSION
from redelivery.operate.letters.receipts.receipt import FORMAT, PlannedLetter, content_of, contents_of
from redelivery.operate.letters.records import dead_letter_record, to_record
from redelivery.operate.letters.routes import Leaving
from redelivery.operate.letters.states.shared_files import who


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
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)  # it may hold what letters say
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
        planned: Sequence[PlannedLetter] | None,
        keep: bool = True,
        **asked: Any,
    ) -> ReceiptWriter:
        """Begin one in a folder, which is made.

        ``planned``: the letters that are meant; None: nobody knows. ``keep``: the originals, where nothing else has
        them. Raises ConfigError: the file cannot be written; nothing has been moved then.
        """
        now = datetime.now(UTC)
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise ConfigError(f"--receipts: {error}; nothing was moved") from error
        written = cls(folder / f"{now:%Y%m%dT%H%M%SZ}-{command}-{run}.jsonl", keep=keep)
        head = {
            "receipt": FORMAT,
            "command": command,
            "run": run,
            "who": who(),
            "when": now.isoformat(timespec="seconds"),
            "broker": connection.metadata.provider_name,
            "at": connection.url,
            "queue": str(queue),
            "to": None if to is None else str(to),
            "letters": None if planned is None else len(planned),
            "asked": {name: value for name, value in asked.items() if value is not None},
            "redelivery": VERSION,
        }
        try:
            written.write(head, *map(_planned, planned or ()))
        except JMSError as error:
            written.close()
            raise ConfigError(f"the receipt cannot be written: {error.__cause__}; nothing was moved") from error
        return written

    def write(self, *lines: Mapping[str, Any]) -> None:
        """Write lines.

        Raises:
            JMSError: they cannot be written: the disk is full, for example. Nothing of them is in the file.
        """
        left = "".join(json.dumps(line) + "\n" for line in lines).encode()  # ASCII: `cat` shows it to a terminal
        length = os.fstat(self._file).st_size
        try:
            while left:
                left = left[os.write(self._file, left) :]
        except OSError as error:
            os.ftruncate(self._file, length)
            raise JMSError(
                f"the receipt cannot be written: {error.strerror}; make room at {self.path}, then "
                "'redelivery dlq resume' goes on with it"
            ) from error

    def before(self, letters: Sequence[tuple[Message, Leaving | None]], *, alone: bool = False) -> None:
        """Write which letters the next commit takes."""
        self._batch += 1
        how = {"alone": True} if alone else {}
        self.write({"batch": self._batch, **how, "letters": [self._entry(*each) for each in letters]})

    def after(self) -> None:
        """Write that it was confirmed."""
        self.write({"done": self._batch})

    def end(self, moved: int) -> None:
        """Write that the run has come to its end."""
        self.write({"end": datetime.now(UTC).isoformat(timespec="seconds"), "letters": moved})

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _entry(self, letter: Message, leaving: Leaving | None) -> dict[str, Any]:
        if leaving is None:
            found = {"id": letter.message_id, "content": content_of(letter)}
            return {**found, "letter": to_record(letter)} if self._keep else found
        content, sent = contents_of(letter, leaving.message)
        found = {"id": letter.message_id, "content": content, "to": str(leaving.destination)}
        if sent != content:
            return {**found, "sent": sent, "letter": to_record(letter)}
        return {**found, "letter": {"dead_letter": dead_letter_record(letter)}}


def state_folder() -> Path:
    """The folder of what is remembered between commands, by the XDG Base Directory Specification."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "redelivery"


def _planned(letter: PlannedLetter) -> dict[str, Any]:
    said = {"planned": letter.id, "content": letter.content, "edited": letter.edited, "there": letter.there or None}
    return {name: value for name, value in said.items() if name == "planned" or value is not None}


def _drop_cut_line(path: Path) -> None:
    """Take away what a kill has left of a line."""
    if path.exists() and not (text := path.read_bytes()).endswith(b"\n"):
        os.truncate(path, text.rfind(b"\n") + 1)
