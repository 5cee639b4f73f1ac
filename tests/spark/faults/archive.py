"""Spark's classes in an archive of the JVM: those that are started and killed here start in half the time.

``python -m tests.spark.faults.archive FILE`` writes it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from tests.spark.versions.artifacts import environment, wanted

FAST = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # they live for seconds
_SECONDS = 180.0


class Archive:
    """The one of all processes of a test run, in ``folder``: the first one makes it, the others do not wait.

    A JVM that cannot make or use it does without.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "spark.jsa"
        try:
            (folder / "spark.jsa.begun").touch(exist_ok=False)
        except FileExistsError:
            return
        variables = environment(wanted(), path=[*filter(None, [os.environ.get("PYTHONPATH")])])
        command = [sys.executable, "-m", "tests.spark.faults.archive", str(self._file)]
        with suppress(subprocess.TimeoutExpired):  # on a busy machine
            subprocess.run(command, env=variables, capture_output=True, timeout=_SECONDS, check=False)  # noqa: S603  # ours

    @property
    def options(self) -> str:
        """For a driver's JVM."""
        return f"{FAST} -XX:SharedArchiveFile={self._file}" if self._file.exists() else FAST


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
