"""Keeps which fingerprints are resolved, and in which release: a file of JSON lines, to which each change is added.

So the file says who has said what, and when.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from redelivery.model.errors import ConfigError, JMSError
from redelivery.operate.letters.states import shared_files
from redelivery.operate.letters.states.shared_files import who

# PEP 440, appendix B
_VERSION: Final = re.compile(
    r"""
    v? (?:(?P<epoch>\d+)!)? (?P<release>\d+(?:\.\d+)*)
    (?:[-_.]?(?P<pre>a|b|c|rc|alpha|beta|pre|preview)[-_.]?(?P<pre_number>\d+)?)?
    (?P<post>-(?P<post_dash>\d+)|[-_.]?(?:post|rev|r)[-_.]?(?P<post_number>\d+)?)?
    (?P<dev>[-_.]?dev[-_.]?(?P<dev_number>\d+)?)?
    (?:\+(?P<local>[a-z\d]+(?:[-_.][a-z\d]+)*))?
    """,
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_PRE: Final = {"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc"}
_BEFORE: Final = (-1, "", 0)
_AFTER: Final = (1, "", 0)
_LONGEST_VERSION: Final = 100  # characters of a version: a stranger's may be of any length
FILE: Final = "resolved.ndjson"
_FINGERPRINT: Final = re.compile(r"[0-9a-f]{12}")
_LONGEST: Final = 200  # characters of a release


@dataclass(frozen=True, slots=True)
class ReleaseName:
    """The name of a release: ``shop 2.4`` is version 2.4 of ``shop``; ``2.4`` that of any application."""

    application: str
    version: str

    @classmethod
    def read(cls, text: str) -> ReleaseName:
        """Read it: the last word is the version."""
        application, _, version = text.strip().rpartition(" ")
        return cls(application.strip(), version)

    def is_from(self, other: ReleaseName) -> bool | None:
        """Check whether it is the other one, or came after it; None: nobody knows.

        They must be of the same application, where both say of which, and have versions as PEP 440 writes them.
        """
        if self.application and other.application and self.application != other.application:
            return None
        ours, others = _key(self.version), _key(other.version)
        return None if ours is None or others is None else ours >= others


def _key(version: str) -> tuple[object, ...] | None:
    """Return what is compared; None: it is no version."""
    found = _VERSION.fullmatch(version) if len(version) <= _LONGEST_VERSION else None
    if found is None:
        return None
    release = tuple(map(int, found["release"].split(".")))
    while len(release) > 1 and not release[-1]:
        release = release[:-1]
    post = found["post_dash"] or found["post_number"] or "0"
    letters = (found["pre"] or "").lower()
    if letters:
        pre = (0, _PRE.get(letters, letters), int(found["pre_number"] or 0))
    else:  # 1.0.dev1 comes before 1.0a1
        pre = _BEFORE if found["dev"] and not found["post"] else _AFTER
    return (
        int(found["epoch"] or 0),
        release,
        pre,
        int(post) if found["post"] else -1,
        (0, int(found["dev_number"] or 0)) if found["dev"] else (1, 0),
        tuple((1, int(each), "") if each.isdigit() else (0, 0, each.lower()) for each in _parts(found["local"])),
    )


def _parts(local: str | None) -> list[str]:
    return re.split(r"[-_.]", local) if local else []


class NotResolvedError(JMSError):
    """A fingerprint of which nobody has said that it is resolved."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """A fingerprint that is resolved: in ``release``, as ``who`` said ``at`` that time; ``what`` it was."""

    fingerprint: str
    release: str
    at: datetime
    who: str
    what: str = ""

    def is_broken_by(self, release: str | None, at: datetime | None) -> bool:
        """Check whether a letter of it failed after it: by its release where these have an order, else by its time."""
        later = None if release is None else ReleaseName.read(release).is_from(ReleaseName.read(self.release))
        return (at is not None and at > self.at) if later is None else later


class Resolutions:
    """The resolutions that a folder keeps."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / FILE

    def read(self) -> dict[str, Resolution]:
        """Return those that hold, by fingerprint, in their order.

        Raises:
            ConfigError: the file cannot be read, or is damaged; the text has the line.
        """
        try:
            lines = shared_files.read(self.file).splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"what is resolved cannot be read: {self.file}: {error}") from error
        found: dict[str, Resolution] = {}
        for number, text in enumerate(lines, 1):
            try:
                _add(found, json.loads(text))
            except (ValueError, KeyError, TypeError) as error:
                raise ConfigError(
                    f"{self.file}, line {number}: this is not a line of it; mend the line or take it away, or move the "
                    "file away to begin anew"
                ) from error
        return found

    def resolve(self, fingerprint: str, release: str, what: str = "") -> Resolution:
        """Keep that a fingerprint is resolved in a release; where it was already, in this one from now on.

        Raises:
            ConfigError: it is no fingerprint, or no release; or the file cannot be written, or is damaged.
        """
        check_fingerprint(fingerprint)
        release = " ".join(release.split())
        if not release or len(release) > _LONGEST or not release.isprintable():
            raise ConfigError(f"--in {release!r}: name the release in which it is resolved, such as 2.4 or 'shop 2.4'")
        self.read()  # or nobody would see this line
        found = Resolution(fingerprint, release, datetime.now(UTC), who(), what)
        said = {"resolved": fingerprint, "in": release, "when": found.at.isoformat(), "who": found.who, "what": what}
        self._write(said)
        return found

    def reopen(self, fingerprint: str) -> Resolution:
        """Take back that it is resolved; what was.

        Raises:
            NotResolvedError: nobody has said so.
            ConfigError: as `resolve`; or more than one begins so.
        """
        known = self.read()
        found = [each for name, each in known.items() if name.startswith(fingerprint.lower())] if fingerprint else []
        if not found:
            raise NotResolvedError(f"{fingerprint!r} is not resolved: 'redelivery dlq resolved' lists what is")
        if len(found) > 1:
            raise ConfigError(f"{fingerprint}: {len(found)} that are resolved begin so: give more of it")
        self._write({"reopened": found[0].fingerprint, "when": datetime.now(UTC).isoformat(), "who": who()})
        return found[0]

    def _write(self, line: Mapping[str, Any]) -> None:
        try:
            shared_files.append(self.file, [line])
        except OSError as error:
            raise ConfigError(f"what is resolved cannot be kept: {self.file}: {error}") from error


def check_fingerprint(text: str) -> None:
    """Raises ConfigError: it is no whole fingerprint."""
    if not _FINGERPRINT.fullmatch(text):
        raise ConfigError(
            f"{text!r} is not a fingerprint, which has 12 digits of 0-9a-f: 'redelivery dlq groups' lists them"
        )


def _add(found: dict[str, Resolution], line: Mapping[str, Any]) -> None:
    """Obey a line. Raises KeyError, TypeError, ValueError: it is none."""
    if "reopened" in line:
        found.pop(line["reopened"], None)
        return
    name, at = line["resolved"], datetime.fromisoformat(line["when"])
    texts = (name, line["in"], line["who"], line["what"])
    if not all(isinstance(each, str) for each in texts) or at.tzinfo is None:
        raise TypeError(name)
    found.pop(name, None)
    found[name] = Resolution(name, line["in"], at, line["who"], line["what"])
