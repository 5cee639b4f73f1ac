"""The Java clients, activemq-client over OpenWire and qpid-jms over AMQP: one warm JVM for all, if Maven is there."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

from benchmarks.cases import Contender
from benchmarks.machine import BenchmarkError, Spent
from benchmarks.ours import mode_and_size
from benchmarks.places import Place, existing, read_line
from redelivery.testing.brokers.ports import NotStartedError
from redelivery.testing.brokers.real import RealBroker
from redelivery.testing.brokers.sources import MavenJars

JARS: Final = MavenJars(
    "benchmark-java-clients-1",
    (
        "org.slf4j:slf4j-nop:2.0.13",
        "org.apache.activemq:activemq-client-jakarta:5.18.3",
        "org.apache.qpid:qpid-jms-client:2.6.1",
    ),
    tools=("java", "javac"),
)
NO_TRANSACTIONS: Final = frozenset(("rabbitmq",))  # over AMQP


class JavaClient:
    """Each call is one run in the JVM; it returns the seconds that the messages took."""

    def __init__(self) -> None:
        """Fetch the clients the first time. Raises NotStartedError."""
        if lacking := JARS.missing():
            raise NotStartedError(lacking)
        self._command = ["java", "-cp", f"{JARS.fetch()}/*", str(Path(__file__).with_name("Bench.java"))]
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
            name, url, prefix = "Java qpid-jms", broker.urls["amqp"], existing(broker.name)
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
