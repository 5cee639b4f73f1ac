"""The end of the demo with Spark, in a process of its own: there its noise stays, and its JVM starts early."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from time import monotonic
from typing import Final

from redelivery.cli.demo.story import Shows, StoryStep
from redelivery.model.errors import JMSError

_LIMIT: Final = 120.0  # seconds, most of which a busy machine needs to start the JVM
_END: Final = 5.0
_CODE: Final = 'spark.readStream.format("jms")… .groupBy("origin", "cause").count()'


def missing() -> str | None:
    """The package that Spark needs and this machine does not have, with how to get it; None: nothing."""
    for name in ("pyspark", "pyarrow", "fsspec"):
        try:
            found = version(name)
        except PackageNotFoundError:
            return f"{name}: from the clone: pip install '.[spark]'"
        if name == "pyspark" and tuple(map(int, re.findall(r"\d+", found)[:2])) < (4, 0):
            return f"pyspark 4.0 or newer, this is {found}: from the clone: pip install --upgrade '.[spark]'"
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(Path(home, "bin", "java") if home else "java")
    if java is None:
        where = f"there is no bin/java in JAVA_HOME={home}" if home else "there is no java on the PATH"
        return f"Java 17 or newer, and {where}: on Debian and Ubuntu 'apt install openjdk-17-jre-headless'"
    said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30).stderr  # noqa: S603  # Java, as Spark finds it
    number = re.search(r'version "(\d+)', said)
    if number is None or int(number[1]) < 17:
        is_now = said.partition("\n")[0] or "none"
        return f"Java 17 or newer, and {java} is {is_now}: set JAVA_HOME to a newer one"
    return None


@contextmanager
def spark_job(show: Shows) -> Iterator[Callable[[str, str], int]]:
    """The process, whose JVM starts now, which takes some seconds.

    What it gives has Spark read a queue of the broker of a URL until that is empty, shows the table, and returns how
    many dead letters were in it. It raises JMSError if that fails, or takes longer than two minutes.
    """
    with (
        TemporaryFile() as errors,
        TemporaryDirectory(prefix="redelivery-demo-", ignore_cleanup_errors=True) as folder,
        subprocess.Popen(
            [sys.executable, "-m", "redelivery.cli.demo.spark_job"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,  # Ctrl-C is for us; we end it
        ) as process,
    ):

        def read(url: str, queue: str) -> int:
            began, text = monotonic(), f"a Spark stream reads {queue}"
            show(StoryStep("spark_reads", {"queue": queue}, text, now=f"{text} … {{gone:.0f}} s"))
            # by its input: a command line, with a password in it, can be read by others
            asked = json.dumps({"url": url, "queue": queue, "folder": folder})
            try:
                answer = json.loads(process.communicate(asked, timeout=_LIMIT)[0])
            except subprocess.TimeoutExpired:
                raise JMSError(f"Spark has not read the dead letters within {_LIMIT:g} s") from None
            except ValueError:
                errors.seek(0)
                lines = [line for line in errors.read().decode(errors="replace").split("\n") if line.strip()]
                answer = {"error": lines[-1].strip() if lines else "it said nothing"}
            if "error" in answer:
                raise JMSError(f"the Spark job failed: {answer['error']}")
            letters: int = sum(count for _, _, count in answer["groups"])
            fields = {**answer, "seconds": monotonic() - began}
            rows = [f"{count:>3}  {origin}  {cause}" for origin, cause, count in answer["groups"]]
            text = "\n".join((*rows, f"{letters} dead letters, read once, in {fields['seconds']:.1f} s"))
            show(StoryStep("spark_table", fields, text, "magenta", title=f"Spark {answer['version']}", code=_CODE))
            return letters

        try:
            yield read
        finally:
            process.terminate()
            try:
                process.communicate(timeout=_END)
            except subprocess.TimeoutExpired:
                process.kill()
