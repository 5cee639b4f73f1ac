"""The entry point of ``redelivery``: exit code 0 done, 1 failed, 2 wrong usage, 130 interrupted."""

from __future__ import annotations

import logging
import sys


def main() -> None:
    """Run the command line; ends the process with its exit code."""
    try:
        _run()
    except KeyboardInterrupt:  # while it is being imported; the commands say so themselves
        print("redelivery: interrupted", file=sys.stderr)
        sys.exit(130)


def _run() -> None:
    if sys.argv[1:] == ["--version"]:  # it works without the extra, too
        from redelivery.model.version import VERSION

        print(f"redelivery {VERSION}")
        return
    try:
        from redelivery.cli.app import app
        from redelivery.cli.parts.shown import VisibleFormatter
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in {"typer", "rich"}:
            raise
        sys.exit(f"redelivery: the command line needs {error.name}; from the clone: pip install '.[cli]'")
    if logging.lastResort is not None:  # what the library logs where no command sets logging up
        logging.lastResort.setFormatter(VisibleFormatter())
        logging.lastResort.addFilter(_is_news)
    app()


def _is_news(record: logging.LogRecord) -> bool:
    """Check whether no command says the same: one whose connection is lost for good ends with that error."""
    said = record.args if isinstance(record.args, tuple) else ()
    return record.name != "redelivery.connection" or said[1:2] != ("",)
