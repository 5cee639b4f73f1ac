"""A session, but for its calls that wait."""

from __future__ import annotations

from redelivery.client.arguments import plain_name
from redelivery.client.session.state import SessionState
from redelivery.model.destinations import Queue, Topic, queue_named
from redelivery.model.errors import ConnectionLostError, IllegalStateError
from redelivery.model.modes import AckMode


class BaseSession:
    """Of both shells."""

    _core: SessionState
    _in_block = False  # of `transaction`

    @property
    def ack_mode(self) -> AckMode:
        """The mode: when a message of this session counts as consumed."""
        return self._core.mode

    @property
    def transacted(self) -> bool:
        """True: commit and rollback decide."""
        return self._core.mode == AckMode.TRANSACTED

    @property
    def closed(self) -> bool:
        """True: it was closed, or its connection lost."""
        return self._core.life.ended or self._core.lost is not None

    def queue(self, name: str) -> Queue:
        """A queue by its name, which is not created by this; ``queue://name`` is the same.

        With ``?declare=false`` behind it, it is not created by its use either.
        """
        return queue_named(plain_name("queue", name))

    def topic(self, name: str) -> Topic:
        """A topic by its name, which is not created by this."""
        return Topic(plain_name("topic", name))

    def check_open(self, action: str) -> None:
        """Raise where it is closed, or its connection lost; the text names ``action``, and says when and why.

        Raises:
            IllegalStateError: it was closed, or its connection.
            ConnectionLostError: the connection was lost.
        """
        core = self._core
        if core.life.ended:
            raise core.life.problem(action)
        if core.lost is not None:
            raise ConnectionLostError(f"{action}: the connection was lost: {core.lost}") from core.lost

    def __repr__(self) -> str:
        return f"<Session {self.ack_mode.name}{' closed' if self.closed else ''}>"

    def _check_transacted(self, action: str) -> None:
        if not self.transacted:
            self.check_open(action)
            raise IllegalStateError(f"{action}: the session's mode is {self.ack_mode.name}, not TRANSACTED")

    def _check_not_transacted(self, action: str) -> None:
        if self.transacted:
            self.check_open(action)
            raise IllegalStateError(f"{action}: the session is transacted; use rollback()")

    def _enter_block(self) -> None:
        """A ``with`` block of `transaction` begins."""
        self._check_transacted("transaction")
        if not self._core.listens:  # a callback goes on while its session is closed
            self.check_open("transaction")
        if self._in_block:
            raise IllegalStateError(
                "transaction: this session is inside a transaction() block already; it does not nest"
            )
        self._in_block = True
