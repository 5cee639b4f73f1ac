"""Spark's other versions, and table formats for each: what the tests run beside the pyspark that is installed.

They lie in the cache of the brokers (~/.cache/redelivery), where `scripts/spark-versions --fetch` puts them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from redelivery.testing.brokers.sources import cache_folder

ROOT: Final = Path(__file__).parents[3]
OTHERS: Final = ("4.0.1", "4.1.1", "4.2.0")
"""Of PySpark; the newest one is in the extra `spark`."""
FORMATS: Final = ("delta", "iceberg")
JARS: Final[Mapping[str, Mapping[str, Sequence[str]]]] = {
    "delta": {
        "4.0": ("io.delta:delta-spark_2.13:4.0.0", "io.delta:delta-storage:4.0.0"),
        "4.1": ("io.delta:delta-spark_4.1_2.13:4.3.1", "io.delta:delta-storage:4.3.1"),
        "4.2": ("io.delta:delta-spark_4.2_2.13:4.4.0", "io.delta:delta-storage:4.4.0"),
    },
    "iceberg": {
        "4.0": ("org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0",),
        "4.1": ("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0",),
    },
}
"""Maven coordinates by the first two numbers of Spark; those that are missing had none when this was written."""
WHY_NOT: Final[Mapping[str, Mapping[str, str]]] = {
    "delta": {"4.3": "none for Spark 4.3 yet; 4.4.0, for 4.2, ends with a NoSuchMethodError there"},
    "iceberg": {
        "4.2": "none for Spark 4.2 yet; 1.11.0, for 4.1, ends at `CREATE TABLE` with a Py4JJavaError there",
        "4.3": "none for Spark 4.3 yet",
    },
}
_PLUGIN: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1"
_SECONDS: Final = 900


def installed() -> str:
    """The version of this interpreter's own pyspark."""
    from importlib.metadata import version

    return version("pyspark")


def wanted() -> str:
    """What `REDELIVERY_SPARK_VERSION` names, for tests that run on any version; else that of this interpreter."""
    return os.environ.get("REDELIVERY_SPARK_VERSION") or installed()


def ends_after_a_batch() -> bool:
    """Check whether AvailableNow is one batch on that version."""
    return tuple(map(int, wanted().split(".")[:2])) < (4, 2)


def pyspark(version: str) -> Path:
    """The folder for PYTHONPATH that has this version of pyspark, there or not."""
    return cache_folder() / f"pyspark-{version}"


def missing(version: str) -> str | None:
    """What to do before this version can be run, in one line; None: nothing."""
    if version == installed() or (pyspark(version) / "pyspark" / "jars").is_dir():
        return None
    return f"pyspark {version} is not in {cache_folder()}: scripts/spark-versions --fetch puts it there"


def fetch(version: str) -> None:
    """Put it there. Raises CalledProcessError: pip says why not."""
    if missing(version) is None:
        return
    scratch = cache_folder() / f".pyspark-{version}-{os.getpid()}"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    try:
        subprocess.run(  # noqa: S603  # pip
            [*command, "--no-compile", "--target", str(scratch), f"pyspark=={version}"], check=True, timeout=_SECONDS
        )
        scratch.rename(pyspark(version))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def jars(table_format: str, version: str, *, fetching: bool = False) -> list[Path] | None:
    """The jars of a table format for this Spark; None: it has none, or they are not in the cache."""
    coordinates = JARS[table_format].get(version.rpartition(".")[0], ())
    found = [_jar(each, fetching=fetching) for each in coordinates]
    return [each for each in found if each is not None] if found and all(found) else None


def environment(version: str, jars: Sequence[Path] = (), *, path: Sequence[str] = ()) -> dict[str, str]:
    """The variables of a process that is to use this version, with the tests and ``path`` on its path."""
    paths = [*([] if version == installed() else [str(pyspark(version))]), *path, str(ROOT)]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    variables.pop("SPARK_HOME", None)
    if jars:
        variables["PYSPARK_SUBMIT_ARGS"] = f"--jars {','.join(map(str, jars))} pyspark-shell"
    return variables


def _jar(coordinates: str, *, fetching: bool) -> Path | None:
    _, name, version = coordinates.split(":")
    there = cache_folder() / "jars" / f"{name}-{version}.jar"
    if not there.exists() and fetching:
        subprocess.run(  # noqa: S603  # Maven
            ["mvn", "-q", "-B", f"{_PLUGIN}:copy", f"-Dartifact={coordinates}", f"-DoutputDirectory={there.parent}"],  # noqa: S607
            check=True,
            timeout=_SECONDS,
        )
    return there if there.exists() else None
