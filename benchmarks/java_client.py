"""The Java clients, activemq-client over OpenWire and qpid-jms over AMQP: one warm JVM for all, if Maven is there."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks.cases import Contender
from benchmarks.machine import BenchmarkError, Spent
from benchmarks.ours import mode_and_size
from benchmarks.places import Place, amqp_at, existing, read_line
from redelivery.testing.brokers.real import RealBroker

POM = Path(__file__).with_name("java") / "pom.xml"
BUILT = Path(__file__).with_name("out") / "java"
NO_TRANSACTIONS: Final = frozenset(("rabbitmq",))  # over AMQP


class JavaClient:
    """Each call is one run in the JVM; it returns the seconds that the messages took."""

    def __init__(self, classpath: str) -> None:
        self._command = ["java", "-cp", classpath, "Bench"]
        self._process: subprocess.Popen[bytes] | None = None

    def contender(self, broker: RealBroker, protocol: str, case: str) -> Contender | None:
        """Return the JMS client beside ours: by OpenWire beside STOMP, else by AMQP; None: by neither."""
        mode, size = mode_and_size(case)
        sends, transacted = case.startswith("send"), case.startswith("commit")
        if protocol == "stomp" and "openwire" in broker.urls:
            name, url, prefix = "Java activemq-client", broker.urls["openwire"], ""
        elif broker.name == "hornetq" or (transacted and broker.name in NO_TRANSACTIONS):
            return None
        else:
            prefix = amqp_at(broker.name).queue_prefix if sends else existing(broker.name)
            name, url = "Java qpid-jms", broker.urls["amqp"]
        verb = f"send {size or 1}" if sends else f"consume {int(mode)} {size}"

        def run(_place: Place, queue: str, count: int) -> Spent:
            return Spent(self._run(f"{url} {prefix}{queue} {count} {verb}"), None)

        return Contender(name, run, first=1000)

    def close(self) -> None:
        """End the JVM; the next run has another one."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with process:  # closes the pipes and waits
                pass

    def _run(self, line: str) -> float:
        if self._process is None:
            self._process = subprocess.Popen(  # noqa: S603  a fixed command
                self._command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        assert self._process.stdin is not None, "started with a pipe"
        self._process.stdin.write(f"{line}\n".encode())
        try:
            answer = read_line(self._process, "the Java client").strip()
            return float(answer)
        except ValueError:
            raise BenchmarkError(f"the Java client, {line!r}: {answer}") from None
        except BenchmarkError:
            self.close()  # it hangs, or has ended
            raise


def missing() -> str | None:
    """Return what it lacks here, None: nothing."""
    lacking = [name for name in ("java", "mvn") if shutil.which(name) is None]
    return f"no {' and no '.join(lacking)}" if lacking else None


@contextmanager
def java_client() -> Iterator[JavaClient]:
    """Compiled where that is to be done, and ended on leaving. Raises BenchmarkError where it does not compile."""
    classpath, made = BUILT / "classpath", BUILT / "classes" / "Bench.class"
    sources = (POM, POM.with_name("Bench.java"))
    if not made.exists() or made.stat().st_mtime < max(source.stat().st_mtime for source in sources):
        maven = ["mvn", "-q", "-B", "-f", str(POM), "compile", "dependency:build-classpath"]
        maven.append(f"-Dmdep.outputFile={classpath}")
        built = subprocess.run(maven, capture_output=True, text=True, check=False)  # noqa: S603  a fixed command
        if built.returncode:
            raise BenchmarkError(f"the Java client does not compile:\n{built.stdout}{built.stderr}")
    client = JavaClient(f"{made.parent}:{classpath.read_text(encoding='utf-8').strip()}")
    try:
        yield client
    finally:
        client.close()
