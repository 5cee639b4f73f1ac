"""activemq-client over OpenWire, where Java and Maven are there: one JVM for the whole run, so that it is warm."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.places import BenchmarkError, read_line

POM = Path(__file__).with_name("java") / "pom.xml"
BUILT = Path(__file__).with_name("out") / "java"


class JavaClient:
    """Each call is one run in the JVM; it returns the seconds that the messages took."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def consume(self, queue: str, count: int, *, mode: int, batch: int = 0) -> float:
        """``mode``: the number of JMS, 4 for INDIVIDUAL_ACKNOWLEDGE."""
        return self._run(f"consume {queue} {count} {mode} {batch}")

    def send(self, queue: str, count: int, *, window: int) -> float:
        """Persistent; one by one, or at most ``window`` unanswered."""
        return self._run(f"send {queue} {count} {window}")

    def _run(self, line: str) -> float:
        assert self._process.stdin is not None, "started with a pipe"
        self._process.stdin.write(f"{line}\n".encode())
        answer = read_line(self._process, "the Java client").strip()
        try:
            return float(answer)
        except ValueError:
            raise BenchmarkError(f"the Java client, {line!r}: {answer}") from None


def missing() -> str | None:
    """What it lacks here, None: nothing."""
    lacking = [name for name in ("java", "mvn") if shutil.which(name) is None]
    return f"no {' and no '.join(lacking)}" if lacking else None


@contextmanager
def java_client(openwire_url: str) -> Iterator[JavaClient]:
    """Compiled, started, and ended on leaving. Raises BenchmarkError where it does not compile."""
    maven = ["mvn", "-q", "-B", "-f", str(POM), "compile", "dependency:build-classpath"]
    maven.append(f"-Dmdep.outputFile={BUILT / 'classpath'}")
    built = subprocess.run(maven, capture_output=True, text=True, check=False)  # noqa: S603  a fixed command
    if built.returncode:
        raise BenchmarkError(f"the Java client does not compile:\n{built.stdout}{built.stderr}")
    classpath = f"{BUILT / 'classes'}:{(BUILT / 'classpath').read_text(encoding='utf-8').strip()}"
    command = ["java", "-cp", classpath, "Bench", openwire_url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:  # noqa: S603  a fixed command
        try:
            yield JavaClient(process)
        finally:
            process.terminate()
