"""The stages of a replay with canaries, as a terminal shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from redelivery import Connection
from redelivery.cli.parts.looking import may_look
from redelivery.cli.parts.progress import Watching
from redelivery.cli.parts.target import NothingError
from redelivery.cli.parts.work import LetterWork
from redelivery.operate.letters.canary import CanaryError, Progress, check_watchable
from redelivery.operate.letters.replaying.planned import PlannedReplays
from redelivery.operate.letters.replaying.widening import Canary, WatchingStage, Widening


def replay_canaries(
    connection: Connection, work: LetterWork, letters: PlannedReplays, canary: Canary, run: str, *, yes: bool
) -> None:
    """Replay what is planned in stages, each when the one before has been handled.

    ``yes``: look into the queues that they are sent to without asking.

    Raises:
        CanaryError: one is back, or nobody took it.
        UnsupportedError: that could not be seen; nothing was replayed.
    """
    targets = dict.fromkeys(each.target for each in letters)
    check_watchable(connection, targets)
    for each in targets:
        with suppress(NothingError):  # it will be there when it is sent to
            may_look("dlq replay", connection, each, yes=yes)
    widening = Widening(
        connection, work.selection.queue, canary, run, work.move, watching=watching(wanted=not work.as_json)
    )
    try:
        with work.cut_short():  # also while it waits
            widening.replay(work.planned, letters)
    except CanaryError:
        work.added["remain"] = widening.left
        work.say_moved()
        raise


def watching(*, wanted: bool = True) -> WatchingStage:
    """Show of each stage that it is watched: on a terminal also how many have been taken."""

    @contextmanager
    def shown(count: int, wait: float) -> Iterator[Callable[[Progress], None]]:
        with (status := Watching(count, wait, wanted=wanted)):
            yield status.show

    return shown
