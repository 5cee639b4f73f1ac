"""The reader of a stream whose options are refused: Spark hides what `streamReader` raises behind an error of its own.

Its runner calls ``reader.stop()`` though there is no reader, and the last line is then an UnboundLocalError.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final, NoReturn

from pyspark.sql.datasource import DataSourceStreamReader

from redelivery.model.errors import ConfigError

_RUNNER: Final = "python_streaming_source_runner"


class RefusedReader(DataSourceStreamReader):
    """Raises ``error`` as soon as Spark asks for anything."""

    def __init__(self, error: ConfigError) -> None:
        self._error = error

    def _refuse(self, *_: Any) -> NoReturn:
        raise self._error

    initialOffset = latestOffset = partitions = read = commit = _refuse

    def stop(self) -> None:
        """Nothing has begun."""


def is_runner() -> bool:
    """Check whether this is the process in which a stream's source lives on the driver's host."""
    main = sys.modules.get("__main__")
    name = getattr(getattr(main, "__spec__", None), "name", None) or ""
    return _RUNNER in name or _RUNNER in Path(str(getattr(main, "__file__", ""))).name
