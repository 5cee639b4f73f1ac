"""A process from which everything was taken that only POSIX has."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.versions.systems import MODULES, POSIX

# Of others: they decide what to use when they are imported, and are not what is tested.
LIBRARIES = (
    *(
        "asyncio",
        "concurrent.futures",
        "ctypes",
        "getpass",
        "importlib.metadata",
        "logging.handlers",
        "multiprocessing",
    ),
    *("pkgutil", "platform", "random", "sqlite3", "ssl", "subprocess", "tempfile", "unittest.mock", "xml.sax"),
    *("defusedxml.ElementTree", "lark", "stomp", "tenacity", "typer", "rich.live", "rich.progress", "yaml", "jinja2"),
    *(
        "starlette.applications",
        "uvicorn",
        "opentelemetry.trace",
        "proton",
        "pytest",
        "pyarrow",
        "pyspark.sql",
        "fsspec",
    ),
    *(
        "pyspark.sql.datasource",
        "prometheus_client",
        "multiprocessing.popen_spawn_posix",
        "multiprocessing.resource_tracker",
    ),
)
# Those that a session needs.
CLIENTS = (
    "asyncio",
    "concurrent.futures",
    "logging.handlers",
    "multiprocessing",
    "ssl",
    "sqlite3",
    "stomp",
    "tenacity",
    "proton",
    "ctypes",
    "platform",
    "random",
    "tempfile",
    "subprocess",
    "defusedxml.ElementTree",
    "lark",
)
TAKEN = f"""
import importlib, json, sys
from contextlib import suppress
for library in LIBRARIES:
    with suppress(ImportError):
        importlib.import_module(library)
for name in {sorted(MODULES)!r}:
    sys.modules[name] = None
for module, names in { ({module: each.split() for module, each in POSIX.items()})!r}.items():
    for name in names:
        if name != "AF_UNIX":  # here the loops of asyncio are made of it
            vars(importlib.import_module(module)).pop(name, None)
sys.platform = "win32"
"""


def on_windows(code: str, folder: Path, libraries: tuple[str, ...] = LIBRARIES) -> list[str]:
    """Lines that the code prints where everything of POSIX was taken away."""
    run = subprocess.run(  # noqa: S603  # our own text
        [sys.executable, "-c", f"LIBRARIES = {libraries!r}\n{TAKEN}{code}"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=170,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return run.stdout.splitlines()
