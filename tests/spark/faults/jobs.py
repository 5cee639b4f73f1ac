"""The test's side of `job`: one process for each master, started when it is needed and again when it has died."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Any, Self

from tests.spark.faults import archive
from tests.spark.faults.orders import kill_session
from tests.spark.versions.artifacts import environment, wanted

_PROGRAM = "tests.spark.faults.job"
_ANSWER_SECONDS = 180.0
_SPARKS = re.compile(r"^\[STREAM_FAILED\] Query \[[^\]]*\] terminated with exception:|SQLSTATE: \w+")
_OURS = re.compile(r"redelivery\.(?:[\w.]+\.)?(\w+): ([^\n]*)")


class HungError(AssertionError):
    """A query neither ended nor failed in time."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one run of a query ended. ``error``: what Spark says, all of it; ``died``: its processes were killed."""

    error: str = ""
    died: bool = False
    batches: int = 0

    @property
    def well(self) -> bool:
        """Everything that was there is in the table."""
        return not self.died and not self.error

    @property
    def cause(self) -> str:
        """Our error in it, with the name of its class; else the beginning of what Spark says."""
        found = _OURS.findall(self.error)
        if found:
            return ": ".join(found[-1])
        if "FOREACH_BATCH_USER_FUNCTION_ERROR" in self.error:
            return "the application's own error"
        return _SPARKS.sub("", self.error.partition("\n")[0]).strip() or "no cause"

    def __str__(self) -> str:
        return "all processes died" if self.died else f"the query failed: {self.cause}" if self.error else "ended well"


class Job:
    """One Spark, in a session of processes of its own. Leaving kills what is left of it."""

    def __init__(self, master: str, java: str, path: Path, log: Path) -> None:
        paths = (str(path), *filter(None, [os.environ.get("PYTHONPATH")]))
        variables = environment(wanted(), path=paths)
        self._log = log.open("ab")
        self._process = subprocess.Popen(  # noqa: S603  # ours
            [sys.executable, "-m", _PROGRAM, master, java],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=variables,
            start_new_session=True,
        )
        self._ended = False
        self._answers: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()
        self._numbers = itertools.count(1)
        if "ready" not in (self._answer(_ANSWER_SECONDS) or {}):
            self.kill()
            raise AssertionError(f"no Spark: see {log}")

    @property
    def alive(self) -> bool:
        return not self._ended and self._process.poll() is None

    def start(self, query: Mapping[str, Any]) -> int | Outcome:
        """The query's number, or how Spark refused it."""
        number = next(self._numbers)
        answer = self._ask({"start": number, **query}, _ANSWER_SECONDS)
        if answer is None:
            return Outcome(died=True)
        return number if "started" in answer else Outcome(error=answer["error"])

    def wait(self, number: int, seconds: float) -> Outcome:
        """Until it has ended. Raises HungError."""
        answer = self._ask({"wait": number, "seconds": seconds}, seconds + _ANSWER_SECONDS)
        if answer is not None and not answer["ended"]:
            self._ask({"stop": number}, _ANSWER_SECONDS)
            raise HungError(f"a query has not ended after {seconds:g} s, with {answer['batches']} batches")
        return _outcome(answer)

    def runs(self, number: int) -> bool:
        """Check whether the query has not ended yet."""
        answer = self._ask({"wait": number, "seconds": 0.05}, _ANSWER_SECONDS) if self.alive else None
        return answer is not None and not answer["ended"]

    def stop(self, number: int) -> Outcome:
        """As `query.stop()` does."""
        return _outcome(self._ask({"stop": number}, _ANSWER_SECONDS))

    def kill(self) -> None:
        """kill -9 of all that belongs to it."""
        kill_session(self._process.pid)
        self._finish()

    def close(self) -> None:
        """Let it end by itself, then kill what is left."""
        assert self._process.stdin is not None
        if self.alive:
            self._process.stdin.close()
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
        kill_session(self._process.pid)
        self._finish()

    def _finish(self) -> None:
        self._process.wait()
        self._reader.join(10)
        for pipe in (self._process.stdin, self._process.stdout, self._log):
            if pipe is not None:
                pipe.close()

    def _ask(self, what: Mapping[str, Any], seconds: float) -> dict[str, Any] | None:
        """None: it has died."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write((json.dumps(what) + "\n").encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            return None
        return self._answer(seconds)

    def _answer(self, seconds: float) -> dict[str, Any] | None:
        try:
            return self._answers.get(timeout=seconds)
        except Empty:
            raise HungError(f"no answer of Spark for {seconds:g} s") from None

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(json.loads(line))
        self._ended = True
        self._answers.put(None)


def _outcome(answer: Mapping[str, Any] | None) -> Outcome:
    if answer is None:
        return Outcome(died=True)
    return Outcome(error=answer["error"] or "", batches=answer["batches"])


class Jobs:
    """The living one of each master. What a dead one has left behind, such as its runner, is killed at the end."""

    def __init__(self, folder: Path) -> None:
        archive.make_once()
        self._path = _entry_point(folder / "path")
        self._log = folder / "spark.log"
        self._jobs: dict[str, Job] = {}
        self._dead: list[Job] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for job in self._jobs.values():
            job.close()
        for job in self._dead:
            job.kill()

    def drop(self, master: str) -> None:
        """Kill it: it may be in any state."""
        job = self._jobs.pop(master, None)
        if job is not None:
            job.kill()

    def last(self, master: str) -> Job:
        """The one that was started last, dead or alive."""
        return self._jobs[master]

    def of(self, master: str) -> Job:
        """Started if there is none; those of other masters are ended, since one JVM at a time is enough."""
        for other in [each for each in self._jobs if each != master]:
            self._jobs.pop(other).close()
        job = self._jobs.get(master)
        if job is None or not job.alive:
            self._dead += [] if job is None else [job]
            job = self._jobs[master] = Job(master, archive.java_options(wanted()), self._path, self._log)
        return job


def _entry_point(folder: Path) -> Path:
    """A folder for PYTHONPATH, by which fsspec finds `killing`."""
    facts = folder / "killing-0.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: killing\nVersion: 0\n", encoding="utf-8")
    (facts / "entry_points.txt").write_text(
        "[fsspec.specs]\nkilling = tests.spark.faults.killing:KillingFileSystem\n", encoding="utf-8"
    )
    return folder
