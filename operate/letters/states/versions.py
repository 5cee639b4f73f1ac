"""Releases of an application in their order: versions of Python's packaging (PEP 440), as most others are, too."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

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
_LONGEST: Final = 100  # characters of a version: a stranger's may be of any length


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
    found = _VERSION.fullmatch(version) if len(version) <= _LONGEST else None
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
