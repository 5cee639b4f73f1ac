"""The end of the demo with Spark: a stream reads the dead letters into a table.

Spark runs in a process of its own (`redelivery.cli.demo.spark_job`): its JVM starts while the orders are played, its
noise stays there, and it ends with the demo, however that ends.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from time import monotonic
from types import TracebackType
from typing import Final, Self

from redelivery.cli.demo.events import Event, SparkReads, SparkTable
from redelivery.model.errors import JMSError

_LIMIT: Final = 120.0  # seconds, most of which a busy machine needs to start the JVM
_END: Final = 5.0
_PACKAGES: Final = ("pyspark", "pyarrow", "fsspec")
_PYSPARK: Final = (4, 2)
_JAVA: Final = 17


class SparkError(JMSError):
    """The Spark job has failed; the text is what it said last."""


def missing() -> str | None:
    """What Spark needs and this machine does not have, with how to get it; None: nothing."""
    for name in _PACKAGES:
        try:
            found = version(name)
        except PackageNotFoundError:
            return f"{name}: from the clone: pip install '.[spark]'"
        if name == "pyspark" and tuple(map(int, re.findall(r"\d+", found)[:2])) < _PYSPARK:
            return f"pyspark 4.2 or newer, this is {found}: from the clone: pip install --upgrade '.[spark]'"
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(Path(home, "bin", "java") if home else "java")
    if java is None:
        where = f"there is no bin/java in JAVA_HOME={home}" if home else "there is no java on the PATH"
        return f"Java {_JAVA} or newer, and {where}: on Debian and Ubuntu 'apt install openjdk-17-jre-headless'"
    said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30).stderr  # noqa: S603  # Java, as Spark finds it
    number = re.search(r'version "(\d+)', said)
    if number is None or int(number[1]) < _JAVA:
        return (
            f"Java {_JAVA} or newer, and {java} is {said.partition(chr(10))[0] or 'none'}: set JAVA_HOME to a newer one"
        )
    return None


class SparkJob:
    """The process. A context manager; entering starts the JVM, which takes some seconds.

    Args:
        report: notified of what it does.
    """

    def __init__(self, report: Callable[[Event], None]) -> None:
        self._report = report
        self._errors = TemporaryFile()  # noqa: SIM115  # closed in __exit__
        self._folder = TemporaryDirectory(prefix="redelivery-demo-", ignore_cleanup_errors=True)

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "redelivery.cli.demo.spark_job"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            start_new_session=True,  # Ctrl-C is for us; we end it
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        try:
            self._process.communicate(timeout=_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
        self._errors.close()
        self._folder.cleanup()

    def read(self, url: str, queue: str) -> SparkTable:
        """Have it read the queue of that broker until that is empty, and report the table.

        Raises:
            SparkError: it failed, or took longer than two minutes.
        """
        began = monotonic()
        self._report(SparkReads(queue))
        try:
            # by its input: a command line, with a password in it, can be read by others
            asked = json.dumps({"url": url, "queue": queue, "folder": self._folder.name})
            said, _ = self._process.communicate(asked, timeout=_LIMIT)
            answer = json.loads(said)
        except subprocess.TimeoutExpired:
            raise SparkError(f"Spark has not read the dead letters within {_LIMIT:g} s") from None
        except ValueError:
            raise SparkError(f"the Spark job failed: {self._last_words()}") from None
        if "error" in answer:
            raise SparkError(f"the Spark job failed: {answer['error']}")
        groups = tuple((origin, cause, letters) for origin, cause, letters in answer["groups"])
        table = SparkTable(answer["version"], groups, answer["batches"], monotonic() - began)
        self._report(table)
        return table

    def _last_words(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
