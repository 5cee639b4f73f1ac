"""The coordinator's link, by which a client declares and discharges transactions."""

from __future__ import annotations

from typing import Any

from redelivery.broker.servers.amqp.codec.coordination import read_request
from redelivery.broker.servers.amqp.codec.outcomes import ACCEPTED, finish, finish_declared
from redelivery.broker.servers.amqp.commands import Declare, Discharge, LinkCommand, RefusedTransfer
from redelivery.broker.servers.amqp.links.incoming import IncomingLink
from redelivery.model.errors import JMSError


class CoordinatorLink(IncomingLink):
    """Takes declares and discharges as its messages; transactions that are open at its end are rolled back."""

    def attach(self) -> None:
        """See `BrokerLink.attach`."""
        self.handle.target.copy(self.handle.remote_target)
        self.open()

    def command(self, number: int, handle: Any, data: bytearray) -> LinkCommand:  # noqa: ARG002 - see IncomingLink
        """A declare or a discharge; anything else is refused."""
        try:
            request = read_request(data)
        except JMSError as error:
            return RefusedTransfer(self.number, number, error, None)
        if request is None:
            return Declare(self.number, number)
        return Discharge(self.number, number, request.transaction, request.fail)

    def execute(self, command: LinkCommand) -> None:
        """See `BrokerLink.execute`."""
        if isinstance(command, Declare):
            handle = self.waiting(command.delivery)
            if handle is not None:
                finish_declared(handle, self.session.transactions.declare(self.number))
                self.answered(command.delivery)
        elif isinstance(command, Discharge):
            handle = self.waiting(command.delivery)
            if handle is not None:
                self.session.transactions.discharge(command.transaction, fail=command.fail)
                finish(handle, ACCEPTED)
                self.answered(command.delivery)
        else:
            super().execute(command)

    def refuse(self, command: LinkCommand, error: JMSError) -> None:
        """See `BrokerLink.refuse`: a commit that is refused is rolled back."""
        if isinstance(command, Discharge) and not command.fail:
            self.session.transactions.forget(command.transaction)
        if isinstance(command, (Declare, Discharge)):
            self.reject(command.delivery, error)
        else:
            super().refuse(command, error)

    def release(self) -> None:
        """See `BrokerLink.release`."""
        super().release()
        self.session.transactions.end_of(self.number)
