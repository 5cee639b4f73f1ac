"""A Spark program to be killed: it runs the queries that it reads from its standard input, a line of JSON each.

``python -m tests.spark.faults.job MASTER JAVA-OPTIONS``; its answers are lines on standard output, ``{"ready": true}``
comes first.

| command | answers |
|---|---|
| `{"start": ID, "options", "checkpoint", "table", …}` | `{"started": ID}`, or `{"error"}` where Spark refuses it |
| `{"wait": ID, "seconds"}` | `{"ended": true or false, "error": text or null, "batches"}` |
| `{"stop": ID}` | the same |

Each batch replaces the file of the table that is named after its batchId, so a batch that is repeated is there once;
`append` names a file to which rows are added each time. See `Keeper` for what else a query may be given.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

from tests.spark.faults.orders import kill_session

from redelivery.spark.versions import HAS_LIMITS

_CONFIGURATION = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "600m",
    "spark.executor.memory": "600m",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.task.maxFailures": "3",
    "spark.sql.streaming.stopTimeout": "20s",
}


@dataclass
class Keeper:
    """``foreachBatch``. ``batch`` is the number of the one that the settings below are about.

    ``actions``: how often each batch is read; ``limit``: that many rows of it are read before, ``only``: and no more.
    ``kill``: before or after the batch is written, all processes die, once; ``touch``: the batch makes this file and
    waits for the one with the further suffix ``.seen``; ``fail``: the batch raises as long as this file is there.
    """

    table: str
    append: str = ""
    actions: int = 1
    limit: int = 0
    only: bool = False
    batch: int = 1
    kill: str = ""
    touch: str = ""
    fail: str = ""

    def __call__(self, frame: Any, batch: int) -> None:
        with open(Path(self.table, "calls"), "a", encoding="utf-8") as calls:
            calls.write(f"{batch}\n")
        if self.limit:
            rows = _rows(frame.limit(self.limit))
        if not self.only:
            rows = _rows(frame)
        for _ in range(self.actions - 1):
            if _rows(frame) != rows:
                Path(self.table, f"{batch}.differs").touch()
        if batch == self.batch and self.fail and Path(self.fail).exists():
            raise ValueError("this batch cannot be written")
        if self.append:
            with open(self.append, "a", encoding="utf-8") as log:
                log.writelines(f"{row}\n" for row in rows)
        self._die("before", batch)
        target = Path(self.table, f"{batch}.json")
        temporary = target.with_suffix(".tmp")
        temporary.write_text(json.dumps(rows), encoding="utf-8")
        temporary.replace(target)
        if batch == self.batch and self.touch:
            Path(self.touch).touch()
            until = time.monotonic() + 30
            while not Path(self.touch + ".seen").exists() and time.monotonic() < until:
                time.sleep(0.01)
        self._die("after", batch)

    def _die(self, when: str, batch: int) -> None:
        flag = Path(self.table, "died")
        if batch == self.batch and self.kill == when and not flag.exists():
            flag.touch()
            kill_session(os.getsid(0))


def _rows(frame: Any) -> list[str]:
    return [row.text for row in frame.selectExpr("string(body) text").collect()]


class UntilEmpty(Thread):
    """A query with AvailableNow on a Spark where that is one batch: started again until nothing comes."""

    def __init__(self, start: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self.recentProgress: list[Any] = []
        self._again, self._query = start, start()
        self._error: Exception | None = None
        self._ended = False
        self.start()

    def run(self) -> None:
        """Two runs without rows are the end: one may be a batch that was repeated and has none."""
        from pyspark.errors import StreamingQueryException

        idle = 0
        while idle < 2 and not self._ended:
            try:
                self._query.awaitTermination()
            except StreamingQueryException as error:
                self._error = error
                return
            progress = self._query.recentProgress
            self.recentProgress += progress
            idle = 0 if any(each["numInputRows"] for each in progress) else idle + 1
            if idle < 2 and not self._ended:
                self._query = self._again()

    def awaitTermination(self, seconds: float) -> bool:
        """As the query's."""
        self.join(seconds)
        if self._error is not None:
            raise self._error
        return not self.is_alive()

    def stop(self) -> None:
        """As the query's."""
        self._ended = True
        self._query.stop()


class Program:
    def __init__(self, master: str, java: str, say: Any) -> None:
        from pyspark.sql import SparkSession

        self._say = say
        builder = SparkSession.builder.master(master).appName("faults")
        for name, value in {**_CONFIGURATION, "spark.driver.extraJavaOptions": java}.items():
            builder = builder.config(name, value)
        self._spark = builder.getOrCreate()
        self._queries: dict[int, Any] = {}
        say(ready=True)

    def obey(self, command: dict[str, Any]) -> None:
        if "start" in command:
            self._start(command)
        elif "wait" in command:
            self._wait(self._queries[command["wait"]], command["seconds"])
        else:
            query = self._queries[command["stop"]]
            query.stop()
            self._wait(query, 30)

    def stop(self) -> None:
        self._spark.stop()

    def _start(self, command: dict[str, Any]) -> None:
        from pyspark.errors import PySparkException

        number = command.pop("start")
        options, checkpoint, forever = command.pop("options"), command.pop("checkpoint"), command.pop("forever", False)
        keeper = Keeper(**command)
        Path(keeper.table).mkdir(parents=True, exist_ok=True)
        try:
            stream = self._spark.readStream.format("jms").options(**options).load()
            writer = stream.writeStream.foreachBatch(keeper).option("checkpointLocation", checkpoint)
            writer = writer.trigger(processingTime="0 seconds") if forever else writer.trigger(availableNow=True)
            self._queries[number] = writer.start() if HAS_LIMITS or forever else UntilEmpty(writer.start)
        except PySparkException as error:
            self._say(error=str(error))
        else:
            self._say(started=number)

    def _wait(self, query: Any, seconds: float) -> None:
        from pyspark.errors import StreamingQueryException

        error = None
        try:
            ended = query.awaitTermination(seconds)
        except StreamingQueryException as raised:
            ended, error = True, str(raised)
        self._say(ended=ended, error=error, batches=len(query.recentProgress))


def main(master: str, java: str) -> None:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.dup(1)
    os.dup2(2, 1)  # what Spark prints is not an answer

    def say(**what: Any) -> None:
        os.write(answers, (json.dumps(what) + "\n").encode())

    program = Program(master, java, say)
    for line in sys.stdin:
        program.obey(json.loads(line))
    program.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
