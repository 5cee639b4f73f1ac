"""An embedded broker behind a gate, for tests that take its connections away."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any
from uuid import uuid4

from tests.run.gate import Gate

from redelivery import ReconnectPolicy
from redelivery.broker import EmbeddedBroker

QUICK = ReconnectPolicy(maximum_delay=0.05)


class Site:
    """An embedded broker behind a gate."""

    def __init__(self, protocol: str, opened: ExitStack, **options: Any) -> None:
        ports: dict[str, Any] = {f"{protocol}_port": 0}
        self.broker = opened.enter_context(EmbeddedBroker(f"gated-{uuid4().hex}", **ports, **options))
        port = int(getattr(self.broker, f"{protocol}_url").rpartition(":")[2])
        self.gate = opened.enter_context(Gate("127.0.0.1", port))
        self.url = f"{protocol}://127.0.0.1:{self.gate.port}"
