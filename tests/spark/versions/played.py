"""Programs of this folder, run on a Spark and a Python, with the broker and the messages that they read."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.run import again
from tests.spark.faults.archive import FAST
from tests.spark.versions.artifacts import ROOT, environment

import redelivery
from redelivery.broker import EmbeddedBroker

SECONDS = 280.0  # of a program in a test
QUEUE = "orders"


class FailedError(AssertionError):
    """A program did not end well: what it printed."""


def send(broker: EmbeddedBroker, count: int, first: int = 0) -> None:
    """Orders, each with a body of its own."""
    with redelivery.connect(broker.vm_url) as connection, connection.session("transacted") as session:
        for number in range(first, first + count):
            session.producer(QUEUE).send(f"order {number}")
        session.commit()


@dataclass
class Runs:
    """Where programs run: ``spark`` and ``python`` of all of them, ``path``: what that Python needs besides."""

    spark: str
    python: str = sys.executable
    jars: Sequence[Path] = ()
    path: Sequence[str] = field(default_factory=list)
    seconds: float = SECONDS

    def program(self, url: str, folder: Path, **plan: Any) -> dict[str, Any]:
        """What `program` prints."""
        return self._answer("program", url, str(folder), QUEUE, json.dumps(plan))

    def lake(self, table_format: str, url: str, folder: Path, moment: str, at: float = 0) -> dict[str, Any]:
        """What `lakes` prints; nothing where it was killed, as it was to be."""
        arguments = (table_format, url, str(folder), moment, str(at))
        return self._answer("lakes", *arguments, dies=moment != "never")

    def example(self, name: str) -> list[str]:
        """What an example of a table format prints, run as it is."""
        variables = {**environment(self.spark, self.jars), "JAVA_TOOL_OPTIONS": FAST}
        done = _run([self.python, "-W", "error", str(ROOT / "examples" / name)], variables, self.seconds)
        assert done.returncode == 0, done.stdout + done.stderr[-4000:]
        return done.stdout.splitlines()

    def _answer(self, module: str, *arguments: str, dies: bool = False) -> dict[str, Any]:
        command = [self.python, "-m", f"tests.spark.versions.{module}", *arguments]
        variables = environment(self.spark, self.jars, path=self.path)
        for _ in again.spark_tries(3):
            done = _run(command, variables, self.seconds)
            if again.TOO_SLOW not in done.stderr:
                break
        if dies and done.returncode == -9:
            return {}
        if done.returncode != 0:
            raise FailedError(done.stdout[-500:] + done.stderr[-4000:])
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return answer


def _run(command: Sequence[str], variables: Mapping[str, str], seconds: float) -> subprocess.CompletedProcess[str]:
    """In a session of its own, so that it can kill it whole."""
    return subprocess.run(  # noqa: S603  # our own
        command, capture_output=True, text=True, timeout=seconds, env=dict(variables), start_new_session=True
    )
