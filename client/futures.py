"""The future of an asynchronous send."""

from __future__ import annotations

from concurrent.futures import Future

from redelivery.model.errors import ConnectionLostError, InDoubtError
from redelivery.model.messages import Message
from redelivery.transports.base import Pending, Transport
from redelivery.transports.wire.clock import monotonic


class SendFuture(Future[Message]):
    """A future whose waiting thread reads the wire itself, so that confirmations need no other thread.

    Fails with what the broker answered, or with InDoubtError where the connection went before the answer.
    """

    def __init__(self, message: Message, transport: Transport) -> None:
        super().__init__()
        self._message = message
        self._transport = transport
        self.pending = Pending(on_done=self._answered)
        self.set_running_or_notify_cancel()

    def result(self, timeout: float | None = None) -> Message:
        """The message as sent, when the broker has confirmed it. Raises TimeoutError after ``timeout`` seconds."""
        self._read_until_done(timeout)
        return super().result(0 if timeout is not None else None)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """The error, or None when the broker has confirmed."""
        self._read_until_done(timeout)
        return super().exception(0 if timeout is not None else None)

    def _answered(self, pending: Pending) -> None:
        error = pending.error
        if error is None:
            if pending.value is not None:
                self._message.stamp(message_id=pending.value)
            self.set_result(self._message)
        elif isinstance(error, ConnectionLostError):
            self.set_exception(in_doubt_send(self._message, error))
        else:
            self.set_exception(error)

    def _read_until_done(self, timeout: float | None) -> None:
        pending = self.pending
        if pending.done:
            return
        waiter = pending.waiter = self._transport.new_waiter()
        deadline = None if timeout is None else monotonic() + timeout
        while not pending.done:
            remaining = None if deadline is None else deadline - monotonic()
            if remaining is not None and remaining <= 0:
                return
            try:
                self._transport.wait(waiter, remaining)
            except ConnectionLostError:
                return  # by rule, every pending answer has failed before


def in_doubt_send(message: Message, error: BaseException) -> InDoubtError:
    """A send whose confirmation did not come."""
    doubt = InDoubtError(
        f"the broker's answer to the send to {message.destination} did not come: it has the message or it has not",
        sent=(message,),
    )
    doubt.__cause__ = error
    return doubt
