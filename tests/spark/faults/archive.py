"""Spark's classes in an archive of the JVM: a Spark of tests starts with two thirds of the processor time.

It lies in this virtual environment, since it belongs to the very files of its Spark: once it is made, further runs
have it, too. ``python -m tests.spark.faults.archive FILE`` writes it.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from zlib import crc32

from tests.spark.versions.artifacts import environment, installed, pyspark, wanted

FAST = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # they live for seconds
_SECONDS = 180.0


def java_options(version: str = "") -> str:
    """For a driver's JVM, of the installed Spark or this one; a JVM that cannot use the archive does without."""
    file = _file(version or installed())
    return f"{FAST} -XX:SharedArchiveFile={file}" if file.exists() else FAST


def make_once() -> None:
    """Make that of the wanted Spark: of the processes that run tests the first one does, the others do not wait."""
    file = _file(wanted())
    begun = file.with_suffix(".begun")
    if file.exists():
        return
    try:
        begun.touch(exist_ok=False)
    except OSError:  # another one has begun, or the environment is not ours to write to
        return
    variables = environment(wanted(), path=[*filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "tests.spark.faults.archive", str(file)]
    try:
        with suppress(subprocess.TimeoutExpired):  # on a busy machine
            subprocess.run(command, env=variables, capture_output=True, timeout=_SECONDS, check=False)  # noqa: S603  # ours
    finally:
        begun.unlink()


def _file(version: str) -> Path:
    """By Java and Spark's classes as they are now: the JVM takes no archive of others."""
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    found = Path(spec.origin).parent if version == installed() else pyspark(version) / "pyspark"
    home = os.environ.get("JAVA_HOME")
    java = Path(shutil.which(Path(home, "bin", "java") if home else "java") or "java").resolve()
    facts = [(each, each.stat().st_mtime_ns) for each in (java, found / "jars") if each.exists()]
    return Path(sys.prefix, f"spark-{version}-{crc32(repr(facts).encode()):08x}.jsa")


def make(target: Path) -> None:
    """Run a stream of a batch, and write what was loaded for it."""
    from pyspark.sql import SparkSession

    making = target.with_suffix(".making")
    builder = SparkSession.builder.master("local[2,3]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.extraJavaOptions", f"{FAST} -XX:ArchiveClassesAtExit={making}")
    session = builder.getOrCreate()
    gateway = session.sparkContext._gateway
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as checkpoint:
        stream = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
        writer = stream.writeStream.foreachBatch(lambda frame, _: frame.collect())
        query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        query.awaitTermination(60)
        session.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()  # the JVM ends with it
    gateway.proc.wait(_SECONDS)
    if making.exists():
        making.replace(target)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
