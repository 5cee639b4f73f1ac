"""A session that threads use: who may come in, and how the holder waits.

1. `use` is the session's one lock. It is taken without waiting by every public call, so that a second thread gets an
   error that says so instead of a race; only `close`, `listen` and the listener thread wait for it, bounded.
2. It is never held while application code runs.
3. An interrupt ends a wait and nothing else (`transports.wire.threads.guard`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from redelivery.client.connection.threads import closes_elsewhere
from redelivery.client.ledger import Received
from redelivery.client.lifecycle import SessionStage
from redelivery.client.operations.close import close_channels, end_work
from redelivery.client.operations.orders import carry_out, finish, performed
from redelivery.client.operations.reattach import came_back, come_back
from redelivery.client.session.inbox import ReportError
from redelivery.client.session.shared import Shared
from redelivery.client.session.state import NEVER, SessionState
from redelivery.client.sync.driver import run
from redelivery.model.errors import ConnectionLostError, IllegalStateError, JMSError, RequestTimeoutError
from redelivery.model.modes import AckMode
from redelivery.transports.seam import Flow, T, Transport
from redelivery.transports.wire.clock import monotonic
from redelivery.transports.wire.threads.guard import handle_noted, noted, protected, take, tore, uninterruptible

_STEP = 0.1  # seconds until the listener's thread is woken once more


class SessionCore(SessionState):
    """The part that Session, Consumer, Producer and the listener thread of one session share."""

    def __init__(self, transport: Transport, shared: Shared, mode: AckMode, report: ReportError) -> None:
        super().__init__(transport, shared, mode, report)
        self.until = NEVER  # while it is being closed: when that must have ended (monotonic seconds)
        self.listener: int | None = None  # the thread of a session that listens
        self.let_in()
        # threads that are in, or wait to come in, for a moment only: see `inside_patiently`
        self.visitors: list[None] = []

    def let_in(self) -> None:
        """Nobody is inside."""
        self.use = threading.Lock()
        self.unfinished = []
        self.finisher: threading.Thread | None = None  # who goes on with what is unfinished where nobody else comes
        self.closer = threading.Lock()  # of one that closes; an interrupted close can be repeated
        self.waits = threading.Lock()  # the listener's thread has it while it waits at the session's waiter

    @property
    def listens(self) -> bool:
        """True: the caller is one of its listeners."""
        return self.listener == threading.get_ident()

    @property
    def in_use(self) -> bool:
        """See SessionState."""
        return self.use.locked()

    # who may come in

    def _wait_to_enter(self, action: str, patience: float | None) -> bool:
        """Take `use` for a public call though somebody has it; see `inside`.

        Raises:
            IllegalStateError: another thread is inside, a listener has the session, or the session is closed.
        """
        if not self.visitors and not self.listens:
            if self.use.acquire(blocking=False):
                return True  # a visitor has just left
            if not self.visitors:
                raise self._busy(action)
        # another thread only closes a consumer or sets a listener; a callback's own call waits for that, too
        waits = patience is not None and self.finisher is not None
        if self.enter_patiently(patience if waits and patience is not None else self.options.close_timeout):
            return True
        if waits:
            return False
        raise self._busy(action)

    def _may_begin(self, action: str, patience: float | None) -> bool:
        """Go on with what a call has left, and look whether the session is open; for the holder of `use`."""
        if self.unfinished:
            late = None if patience is None else self.now() + patience
            if not self.do(finish(self, late)):
                return False
        problem = (self.ended(action) or self.listened(action)) if self.needs_check else None
        if problem is not None:
            raise problem
        return True

    def enter_patiently(self, timeout: float) -> bool:
        """Take `use`, from any thread, within ``timeout`` seconds."""
        return take(self.use, timeout)

    def inside(self, action: str, step: Callable[[], T], patience: float | None = None, late: T | None = None) -> T:
        """Do the ``step`` of a public call, with `use`.

        Where a call that has ended goes on with its dead letter (`carry_out`) for longer than ``patience`` seconds,
        return ``late``; None: as long as that takes.

        Raises:
            IllegalStateError: another thread is inside, a listener has the session, or the session is closed.
            ConnectionLostError: the connection is gone.
        """
        try:
            return self._inside(action, step, patience, late)
        except BaseException as error:
            self._fail_torn(error)
            raise
        finally:
            if noted:
                handle_noted()

    @protected
    def _inside(self, action: str, step: Callable[[], T], patience: float | None, late: T | None) -> T:
        use = self.use
        if not use.acquire(blocking=False) and not self._wait_to_enter(action, patience):
            return late  # type: ignore[return-value]  # given with ``patience``
        try:
            if (self.unfinished or self.needs_check) and not self._may_begin(action, patience):
                return late  # type: ignore[return-value]  # as above
            return step()
        finally:
            use.release()

    def leave(self) -> None:
        """Release `use`."""
        self.use.release()

    def make_way(self) -> None:
        """Let the listener's thread leave its wait: the holder of `use` waits at the same place, one at a time."""
        if not self.waits.acquire(blocking=False):
            self.waiter.wake()
            while not take(self.waits, _STEP):
                self.waiter.wake()
        self.waits.release()

    def inside_patiently(self, action: str, step: Callable[[], T]) -> T:
        """The same from any thread, whatever the state of the session: waits, bounded, for the one who has it."""
        try:
            return self._inside_patiently(action, step)
        except BaseException as error:
            self._fail_torn(error)
            raise
        finally:
            if noted:
                handle_noted()

    @protected
    def _inside_patiently(self, action: str, step: Callable[[], T]) -> T:
        self.visitors.append(None)
        self.waiter.wake()
        try:
            if not self.enter_patiently(self.options.close_timeout):
                raise RequestTimeoutError(
                    f"{action}: a thread did not leave the session within close_timeout="
                    f"{self.options.close_timeout:g} s"
                )
            try:
                return step()
            finally:
                self.use.release()
        finally:
            del self.visitors[-1]

    def _fail_torn(self, error: BaseException) -> None:
        """End the connection where an interrupt has come all the same: what was going on may be half done."""
        if tore(error):
            where = "a signal handler that was set after the connection was made has interrupted a call"
            self.epoch.transport.fail(ConnectionLostError(f"{where} by {error!r}: set it before"))

    def _busy(self, action: str) -> JMSError:
        if self.life.ended:
            return self.life.problem(action)  # it is being closed
        return self.listened(action) or IllegalStateError(
            f"{action}: another thread is using this session; a JMS session serves one thread at a time, "
            "so give each thread a session of its own; to send from any thread there is connection.publisher()"
        )

    def check_open(self, action: str) -> None:
        """Raise where the session is closed or lost; a listener may be set. For the holder of `use`."""
        problem = self.ended(action)
        if problem is not None:
            raise problem

    @uninterruptible
    def release(self, hand: Iterable[Received]) -> None:
        """See SessionState; a second interrupt takes nothing with it either."""
        super().release(hand)

    # how its holder waits

    def do(self, flow: Flow[T]) -> T:
        """Drive a flow, each answer within `request_timeout`."""
        return run(flow, self.epoch, self.waiter, self.options.request_timeout, self.until)

    def perform(self, flow: Flow[T]) -> T:
        """Drive an operation, and carry out what the ledger has ordered because of it; an interrupt leaves that."""
        return self.do(performed(self, flow))

    def carry_out(self) -> None:
        """Carry out the ledger's orders, where there are any."""
        if self.ledger.orders or self.unfinished:
            self.do(carry_out(self))

    def finish_later(self) -> None:
        """See SessionState."""
        if self.finisher is None:
            self.finisher = threading.Thread(target=self._finish_alone, name="redelivery-dead-letter", daemon=True)
            self.finisher.start()

    def _finish_alone(self) -> None:
        """As soon as the session is free; one who is inside before goes on with it himself."""
        self.visitors.append(None)
        entered = False
        try:
            entered = self.enter_patiently(self.options.request_timeout)
            if entered and self.unfinished:
                self.do(finish(self))
        except ConnectionLostError:
            pass  # the session's next call meets it
        except JMSError as error:
            self.report(error)
        finally:
            self.finisher = None
            if entered:
                self.use.release()
            del self.visitors[-1]  # last: see `_wait_to_enter`

    def come_back(self, timeout: float) -> bool:
        """On the connection that has come, unless its holder does so himself; False where it is still to be done."""
        self.visitors.append(None)
        entered = False
        try:
            entered = self.enter_patiently(timeout)
            if not entered:
                return came_back(self)
            self.make_way()
            return self.do(come_back(self, self.now() + timeout))  # bounded: the caller dials, if it is lost again
        finally:
            if entered:
                self.use.release()
            del self.visitors[-1]  # last: see `_wait_to_enter`

    def closes_elsewhere(self, close: Callable[[], None]) -> bool:
        """Have another thread close, where the call to close has interrupted another call; True: it does."""
        return closes_elsewhere((self,), close, self.options.close_timeout)

    def to_the_end(self, work: Callable[[], T]) -> T:
        """Do it; an interrupt ends its waits."""
        return work()

    @uninterruptible
    def close_once(self, work: Callable[[], None], until: float) -> None:
        """Do it, unless it is done; where another thread does, wait for it until ``until`` (monotonic seconds)."""
        if take(self.closer, until - monotonic()):
            try:
                if self.life.stage is not SessionStage.CLOSED:
                    work()
            finally:
                self.closer.release()

    def end_work(self) -> None:
        """For the close: roll back, wait for what is still unanswered, end the channels."""
        try:
            self.do(end_work(self))
        finally:
            self.do(close_channels(self))
