"""The framed parts of the demo: what runs, the dead-letter queue, the summary."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from redelivery.cli.demo.events import DeadLettered, SparkTable, Started, Summary
from redelivery.cli.demo.picture import panel, summary_panel


def introduction(event: Started) -> Panel:
    """Where it runs, and the code that it plays."""
    where = Text.assemble(
        (event.broker, "bold"), f" over {event.protocol}, {event.url}\n",
        (f"{len(event.orders)} orders", "bold"), " in queue ", (event.queue, "bold"), ", consumed like this:",
    )  # fmt: skip
    times = len(event.delays) + 1
    code = (
        "message = consumer.receive()\n"
        "try:\n"
        "    handle(message)                  # some orders fail once, some always\n"
        "    session.commit()\n"
        "except Exception as error:\n"
        f"    session.rollback(cause=error)    # again after {_then(event.delays)} s\n"
        f"                                     # {times} failures: dead-letter queue\n"
    )
    listing = Syntax(code.rstrip(), "python", theme="ansi_dark", background_color="default")
    return panel(Group(where, Padding(listing, (1, 0, 0, 2))), "redelivery demo", "cyan")


def dead_letters(started: Started, letters: Sequence[DeadLettered]) -> Panel:
    """What stands in the dead-letter queue."""
    parts: list[RenderableType] = []
    for letter in tuple(letters):
        parts.append(
            Text.assemble(
                (f"order {letter.order}", "bold red"), f"  from {letter.origin} after {letter.deliveries} deliveries"
            )
        )
        parts.append(Padding(Text(letter.short_cause, "dim"), (0, 0, 0, 2)))
    title = f"dead-letter queue {started.dead_letter_queue}: {len(letters) or 'empty'}"
    return panel(Group(*parts) if parts else Text("nothing yet", "dim"), title, "red" if parts else "dim")


def conclusion(summary: Summary) -> Panel:
    """The counts, and whether they add up."""
    first = summary.deliveries - summary.redeliveries
    text = Text.assemble(
        (str(summary.sent), "bold"), " orders sent = ",
        (str(summary.processed), "bold green"), " processed + ",
        (str(summary.dead_letters), "bold red"), " dead letters\n",
        (str(summary.deliveries), "bold"), f" deliveries  = {first} first + ",
        (str(summary.redeliveries), "bold cyan"),
        f" redeliveries, at most {summary.worst_lateness * 1000:.0f} ms later than planned\n",
    )  # fmt: skip
    return summary_panel(text, summary.problems, "none lost, none processed twice, none too early", summary.seconds)


def spark_table(event: SparkTable) -> Panel:
    """What the stream read, counted by Spark."""
    table = Table(box=None, pad_edge=False, expand=True, header_style="bold")
    table.add_column("origin", no_wrap=True)
    table.add_column("cause", ratio=1, no_wrap=True, overflow="ellipsis")
    table.add_column("letters", justify="right")
    for origin, cause, letters in event.groups:
        table.add_row(Text(origin), Text(cause), str(letters))
    code = 'spark.readStream.format("jms")… .groupBy("origin", "cause").count()'
    took = Text(f"{event.letters} dead letters, read once, in {event.seconds:.1f} s", "dim")
    return panel(Group(Text(code, "cyan"), table, took), f"Spark {event.version}", "magenta")


def _then(delays: Sequence[float]) -> str:
    return ", then ".join(f"{delay:g}" for delay in delays)
