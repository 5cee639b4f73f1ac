"""An embedded broker with a store, which a test can kill and start again."""

from __future__ import annotations

from pathlib import Path

from redelivery.broker import EmbeddedBroker


class DurableBroker:
    """The broker is `broker`: another one after each `restart`, with the same file and the same ports."""

    def __init__(self, name: str, store: Path, *, amqp: bool) -> None:
        self._never_struck: list[str] = []
        self.store = store
        self._name = name
        self._ports: dict[str, int | None] = {"stomp_port": 0, "amqp_port": 0 if amqp else None}
        self.broker = self._start()

    def kill(self) -> None:
        """End it as a kill -9 would: its connections are lost, and what it has not answered may be."""
        self.broker.kill()

    def restart(self) -> EmbeddedBroker:
        """Start it again with what its store holds; where it runs, it is closed first."""
        self.broker.close()
        self._never_struck = self.never_struck
        self.broker = self._start()
        return self.broker

    def close(self) -> None:
        """End it. Idempotent."""
        self.broker.close()

    @property
    def never_struck(self) -> list[str]:
        """The planned faults that no step has met, of all brokers that there were; what `clear` took away is none."""
        return [*self._never_struck, *map(str, self.broker.faults.never_struck)]

    def _start(self) -> EmbeddedBroker:
        stomp, amqp = self._ports["stomp_port"], self._ports["amqp_port"]
        broker = EmbeddedBroker(self._name, stomp_port=stomp, amqp_port=amqp, store=self.store).start()
        for protocol, url in broker.urls.items():
            self._ports[f"{protocol}_port"] = int(url.rpartition(":")[2])
        return broker
