"""A worker whose numbers Prometheus scrapes: `worker.py`, with http://localhost:9100/metrics.

python worker_prometheus.py stomp://user:password@localhost:61613 [port]        needs: pip install prometheus-client
"""

import logging
import sys
from collections.abc import Iterator

from prometheus_client import Counter, Histogram, start_http_server
from prometheus_client.core import REGISTRY, CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

import redelivery
from redelivery import ListenerContainer, Message, ReconnectPolicy, RedeliveryPolicy, Session, SharedDeadLetterStrategy
from redelivery.events import ConnectionLost, DeadLettered, Event, Reconnected, RolledBack

QUEUE = "orders"
redeliveries = Counter("redelivery_redeliveries", "Messages that failed, and are redelivered", ["queue", "cause"])
dead_letters = Counter("redelivery_dead_letters", "Messages that became dead letters", ["queue", "cause"])
losses = Counter("redelivery_connections_lost", "Connections that were lost")
reconnects = Counter("redelivery_reconnects", "Connections that came back")
duration = Histogram("redelivery_handler_seconds", "How long the handler took", ["queue"])


def observe(event: Event) -> None:
    """Called with each event, from the thread in which it happens: it only counts."""
    match event:
        case RolledBack() | DeadLettered():
            cause = "unknown" if event.cause is None else type(event.cause).__name__
            queue = "unknown" if event.destination is None else event.destination.name
            (redeliveries if isinstance(event, RolledBack) else dead_letters).labels(queue, cause).inc()
        case ConnectionLost():
            losses.inc()
        case Reconnected():
            reconnects.inc()


class ContainerCollector(Collector):
    """A container's own counters, read when Prometheus asks."""

    def __init__(self, queue: str, container: ListenerContainer) -> None:
        self._queue = queue
        self._container = container

    def collect(self) -> Iterator[Metric]:
        found = self._container.counters
        messages = CounterMetricFamily("redelivery_messages", "Given to the handler", labels=["queue", "outcome"])
        for outcome in ("succeeded", "failed", "given_up", "dropped"):
            messages.add_metric([self._queue, outcome], getattr(found, outcome))
        yield messages
        for name, text, value in (
            ("in_flight", "Messages that the handler has", found.in_flight),
            ("workers", "Sessions that consume", found.workers),
            ("healthy", "1: connected, consuming, and the outage breaker is closed", self._container.healthy),
        ):
            gauge = GaugeMetricFamily(f"redelivery_{name}", text, labels=["queue"])
            gauge.add_metric([self._queue], value)
            yield gauge


@duration.labels(QUEUE).time()
def handle(order: Message, session: Session) -> None:
    """Your code."""
    if order.body == "the moon":
        raise LookupError("no such article")
    session.producer("invoices").send(f"invoice for {order.body}")


def main(url: str, port: int) -> None:
    with redelivery.connect(
        url,
        observer=observe,
        reconnect=ReconnectPolicy(),
        redelivery_policy=RedeliveryPolicy(maximum_redeliveries=2, initial_redelivery_delay=0.5, redelivery_delay=0.5),
        dead_letter_strategy=SharedDeadLetterStrategy("ActiveMQ.DLQ"),
    ) as connection:
        container = connection.listener_container(QUEUE, handle, concurrency=2, prefetch=10)
        REGISTRY.register(ContainerCollector(QUEUE, container))
        server, _ = start_http_server(port, addr="127.0.0.1")
        logging.info("metrics at http://127.0.0.1:%d/metrics", server.server_port)
        container.run()  # until SIGTERM or Ctrl-C
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 9100)
