"""What users do to queries and to their folders: other options, lost folders, two queries at once."""

from __future__ import annotations

import json
import shutil

from tests.spark.faults.account import in_table
from tests.spark.faults.cases import LOCAL, case
from tests.spark.faults.jobs import Outcome
from tests.spark.faults.kills import SEGMENT
from tests.spark.faults.orders import Order
from tests.spark.faults.stage import Stage, summary, until
from tests.spark.versions.artifacts import ends_after_a_batch

BOTH = ("driver", "executor")


@case("nothing happens", master=LOCAL, short=BOTH)
def baseline(stage: Stage) -> str:
    stage.send()
    return summary(stage.complete())


@case("two actions in foreachBatch", short=BOTH)
def two_actions(stage: Stage) -> str:
    stage.settings["actions"] = 2
    stage.send()
    return summary(stage.complete())


@case("limit() and then all of the batch", short=("executor",))
def limit_then_all(stage: Stage) -> str:
    stage.settings["limit"] = 10
    stage.send()
    return summary(stage.complete())


@case("limit() and no more")
def limit(stage: Stage) -> str:
    stage.settings |= {"limit": 10, "only": True}
    stage.gives_up = True  # the rest of what was received
    stage.send()
    return summary(stage.complete())


def fails_in_its_second_batch(stage: Stage) -> Outcome:
    """One batch is committed, one is planned and received; the next run finds both."""
    stage.send()
    flag = stage.folder / "fail"
    flag.touch()
    stage.settings["fail"] = str(flag)
    first = stage.run()
    assert "this batch cannot be written" in first.error, first
    flag.unlink()
    return first


@case("restarted with other options", short=BOTH)
def other_options(stage: Stage) -> str:
    first = fails_in_its_second_batch(stage)
    stage.options |= {"numPartitions": "3", "maxMessagesPerBatch": "60", "compression": "none"}
    stage.options |= {"segmentRows": "20", "lanes": "1"} if stage.receiver == "driver" else {}
    return summary(stage.complete(first))


@case("restarted with the other receiver", short=("driver",))
def other_receiver(stage: Stage) -> str:
    first = fails_in_its_second_batch(stage)
    mine = dict(stage.options)
    stage.options = {name: text for name, text in mine.items() if name not in ("segmentRows", "linger")}
    stage.options.pop("receiveTimeout", None)
    other = "executor" if stage.receiver == "driver" else "driver"
    second = stage.run(receiver=other)
    assert "ConfigError" in second.error, second.error
    assert f"receiver={stage.receiver}" in second.cause, second.cause
    assert f"receiver={other}" in second.cause, second.cause
    stage.options = mine
    return summary(stage.complete(first, second))


@case("another walLocation with the same checkpoint", short=("executor",))
def other_wal(stage: Stage) -> str:
    first = fails_in_its_second_batch(stage)
    stage.wal = "other"
    second = stage.run()
    assert "the checkpoint belongs to log" in second.cause, second.error
    stage.wal = "wal"
    return summary(stage.complete(first, second))


@case("walLocation emptied", short=("driver",))
def lost_wal(stage: Stage) -> str:
    """Refused; a new checkpoint goes on with what comes."""
    first = fails_in_its_second_batch(stage)
    shutil.rmtree(stage.folder / stage.wal)
    second = stage.run()
    assert "the checkpoint belongs to log" in second.cause, second.error
    shutil.rmtree(stage.folder / stage.checkpoint)
    stage.table = stage.table / "again"  # whose batches are numbered from 0
    third = _goes_on(stage)
    stage.table = stage.table.parent
    return summary([first, second, *third])


@case("segments deleted", receivers=("driver",), short=("driver",))
def lost_segments(stage: Stage) -> str:
    first = fails_in_its_second_batch(stage)
    for each in stage.wal_file("seg/*.arrow"):
        each.unlink()
    second = stage.run()
    assert "DataLossError" in second.cause, second.error
    assert "failOnDataLoss=false" in second.cause, second.error
    stage.options["failOnDataLoss"] = "false"
    return summary([first, second, *_goes_on(stage)])


def _goes_on(stage: Stage) -> list[Outcome]:
    """With what comes."""
    stage.gives_up = True
    before = len(stage.sent)
    stage.send()
    outcomes = stage.complete()
    assert set(stage.rows()) >= set(stage.sent[before:]), "what was sent afterwards is not there"
    return outcomes


@case("checkpoint deleted while segments are unread", short=("driver",))
def lost_checkpoint(stage: Stage) -> str:
    first = fails_in_its_second_batch(stage)
    shutil.rmtree(stage.folder / stage.checkpoint)
    stage.table = stage.table / "again"  # whose batches are numbered from 0
    second = stage.run()
    stage.table = stage.table.parent
    return summary([first, second])


@case("a second query on the same walLocation", short=BOTH)
def two_queries(stage: Stage) -> str:
    """It is refused while the first one runs; afterwards it reads what that had not reported as done."""
    stage.send(100)
    first = stage.start(forever=True)
    until(lambda: len(set(stage.rows())) == 100, "a batch of the first query")
    assert isinstance(first, int)
    checkpoint, table = stage.checkpoint, stage.table
    again = stage.table / "again"
    stage.checkpoint, stage.table = "second", again
    second = stage.run()
    assert "is in use by another query" in second.cause, second.error
    stage.checkpoint, stage.table = checkpoint, table
    stage.send(100)
    until(lambda: len(set(stage.rows())) == len(stage.sent), "the first query goes on")
    stopped = stage.job_now().stop(first)
    stage.checkpoint, stage.table = "second", again
    third = stage.run()
    assert third.well, third.error
    stage.table = table
    last = max(table.glob("*.json"), key=lambda file: int(file.stem))
    came_again = set(json.loads(last.read_text(encoding="utf-8"))) <= set(in_table(again))
    if came_again:
        last.unlink()
    words = f"the second one: {second}; the first one, stopped: {stopped}; the second one afterwards: {third}"
    return words + "; the first one's last batch is in both" * came_again


@case("a lane killed: received, not published", receivers=("driver",), lanes="2")
def lane_received(stage: Stage) -> str:
    return _lane(stage, Order(do="kill", when="before", operation="write", name=SEGMENT, who="lane"))


@case("a lane killed: published, not committed at the broker", receivers=("driver",), short=("driver",), lanes="2")
def lane_published(stage: Stage) -> str:
    return _lane(stage, Order(do="kill", when="after", operation="write", name=SEGMENT, who="lane"))


def _lane(stage: Stage, order: Order) -> str:
    stage.send()
    stage.order(order)
    first = stage.run()
    ended_before = ends_after_a_batch() and first.well  # the batch had what the lane had published
    assert ended_before or "a lane's process ended" in first.cause, first.error
    return summary(stage.complete(first))


@case("a lane held until its number is used up", receivers=("driver",), short=("driver",), lanes="2", prefetch="20")
def slow_lane(stage: Stage) -> str:
    """The other lane's segment of that number is read, committed and deleted, so the name is free again."""
    stage.send()
    first = "seg/000000000001-0000.arrow"
    stage.order(Order(do="gate", when="before", operation="write", name=first, who="lane"))
    flag = stage.folder / "batch"
    stage.settings |= {"batch": 2, "touch": str(flag)}
    started = stage.start()
    until(flag.exists, "the third batch")
    assert stage.orders.happened() == 1
    assert not stage.wal_file(first), "the segment is not deleted yet"
    stage.orders.open_gate()
    until(stage.orders.went_on, "waking")
    flag.with_name(f"{flag.name}.seen").touch()
    return summary(stage.complete(stage.finish(started)))
