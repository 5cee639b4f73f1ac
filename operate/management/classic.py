"""ActiveMQ Classic's management, by the Jolokia of its web console: its queues. Its protocols have browsers themselves.

The attributes are those of ``org.apache.activemq.broker.jmx.QueueViewMBean``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NoReturn

from redelivery.model.errors import ProtocolError, UnsupportedError
from redelivery.operate.management.interface import Cost, ManagedQueue
from redelivery.transports.management.address import ManagementAddress
from redelivery.transports.management.jolokia import JolokiaClient

_PATH: Final = "/api/jolokia"
_BROKERS: Final = "org.apache.activemq:type=Broker,brokerName=*"
_QUEUES: Final = f"{_BROKERS},destinationType=Queue,destinationName=*"
_ATTRIBUTES: Final = ("Name", "QueueSize", "InFlightCount", "ConsumerCount", "EnqueueCount", "DequeueCount")


class ClassicManagement:
    """See `redelivery.operate.management.interface.Management`. ``address``: of its web console."""

    def __init__(self, address: ManagementAddress) -> None:
        self.jolokia = JolokiaClient(address, _PATH)

    @property
    def name(self) -> str:
        """See `Management`."""
        doing = "asking the broker's management who it is"
        versions = [str(each.get("BrokerVersion", "")) for each in self._beans(_BROKERS, ("BrokerVersion",), doing)]
        return f"ActiveMQ Classic {' and '.join(versions)}".strip()

    def queues(self) -> Iterator[ManagedQueue]:
        """See `Management`; temporary queues and those of plug-ins' own types are not among them."""
        return map(_managed, self._beans(_QUEUES, _ATTRIBUTES, "listing the queues"))

    def queue(self, name: str) -> ManagedQueue | None:
        """See `Management`."""
        return next((each for each in self.queues() if each.name == name), None)

    def cost(self, queue: ManagedQueue) -> Cost:  # noqa: ARG002  # a browser takes nothing
        """See `Management`."""
        return Cost()

    def browse(self, queue: str, limit: int | None = None) -> NoReturn:  # noqa: ARG002  # as `Management` says
        """See `Management`.

        Raises:
            UnsupportedError: always: `Session.browser` shows the messages as they are, and the console cuts them.
        """
        raise UnsupportedError(
            f"queue://{queue}: look into it by a browser, which ActiveMQ Classic has over STOMP and AMQP"
        )

    def _beans(self, pattern: str, attributes: tuple[str, ...], doing: str) -> list[Mapping[str, Any]]:
        said = self.jolokia.read(pattern, attributes, doing=doing)
        if not isinstance(said, dict) or not all(isinstance(each, dict) for each in said.values()):
            raise ProtocolError(f"{doing}: what answers at {self.jolokia.address.masked} is not ActiveMQ Classic")
        return list(said.values())


def _managed(row: Mapping[str, Any]) -> ManagedQueue:
    """A queue: its depth includes what consumers have and have not acknowledged."""
    said = {name: None if row.get(name) is None else int(row[name]) for name in _ATTRIBUTES if name != "Name"}
    size, taken = said["QueueSize"], said["InFlightCount"]
    return ManagedQueue(
        str(row.get("Name")),
        kind="queue",
        ready=None if size is None else max(0, size - (taken or 0)),
        unacknowledged=taken,
        consumers=said["ConsumerCount"],
        enqueued=said["EnqueueCount"],
        dequeued=said["DequeueCount"],
    )
