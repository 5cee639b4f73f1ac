"""Opens a broker's configuration file, and those that it includes: the one place of `policies` that reads files."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Final

from redelivery.model.errors import ConfigError
from redelivery.policies.brokers.clients.url.reader import is_url, shown_url
from redelivery.policies.brokers.formats import LARGEST, URL, read_content, read_url
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.files.places import Place, problem_at
from redelivery.policies.files.report import NO_PROPERTIES, ReadingReport

_MOST: Final = 200  # included files


def read_file(
    path: str | PathLike[str],
    *,
    format: str | None = None,
    properties: Mapping[str, str] = NO_PROPERTIES,
    strict: bool = True,
) -> BrokerPolicies:
    """Read a file or URL; see `redelivery.policies.read`."""
    if is_url(path) and format in (None, URL):
        if str(path).lower().startswith(("http", "file:")) and str(path).lower().endswith((".xml", ".json")):
            raise ConfigError(f"{shown_url(str(path))}: a file is not fetched by its URL: pass its path")
        return read_url(str(path), strict=strict)
    if not fspath(path):
        raise ConfigError("the path of the configuration file is empty: pass a file, or a client's URL")
    (first, *others), part = _layers(fspath(path))
    return read_content(
        _content(Path(first), first),
        first,
        format=format,
        properties=properties,
        strict=strict,
        load=Includes(Path(first).absolute().parent, properties),
        overrides=[(each, _content(Path(each), each)) for each in others],
        part=part,
    )


def _layers(path: str) -> tuple[list[str], str | None]:
    """Split ``broker.xml,broker.properties``, as Artemis' own option does, and ``brokers.yaml#name``.

    What is the name of one file stays whole.
    """
    if _is_file(path):
        return [path], None
    before, mark, part = path.rpartition("#")
    if mark and _is_file(before):
        return [before], part
    names = path.split(",")
    return (names if len(names) > 1 and all(names) else [path]), None


def _is_file(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):  # too long a name, or a NUL in it
        return False


class Includes:
    """Gives the files that others include: those of the first one's folder and below it, and nothing else.

    ``properties``: the values of placeholders (``${name}``) in their names.
    Altogether they are limited to the size of one file, and in their number.
    """

    def __init__(self, folder: Path, properties: Mapping[str, str] = NO_PROPERTIES) -> None:
        self._folder = folder.resolve()
        self._names = ReadingReport(properties)
        self._left = LARGEST
        self._files = _MOST

    def __call__(self, includer: str, wanted: str) -> tuple[str, bytes]:
        """Return the name of the file and its bytes.

        Raises:
            ConfigError: it is not below the folder, has a placeholder without a value, cannot be read, or is too large.
        """
        wanted = self._names.resolved(wanted)
        if "://" in wanted or "\0" in wanted or not wanted:
            raise ConfigError("only a relative path is followed")
        asked = Path(includer).absolute().parent / wanted
        file = asked.resolve()
        if not file.is_relative_to(self._folder):
            raise ConfigError(f"only files below {self._folder} are followed")
        name = str(Path(includer).parent / wanted)
        self._files -= 1
        if self._files < 0:
            raise ConfigError(f"more than {_MOST} files are included")
        content = _content(file, name)
        self._left -= len(content)
        if self._left < 0:
            raise ConfigError(f"what it includes has more than {LARGEST} bytes")
        return name, content


def _content(file: Path, name: str) -> bytes:
    try:
        with file.open("rb") as stream:
            return stream.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise problem_at(Place(name), f"cannot be read: {reason}") from error
