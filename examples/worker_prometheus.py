"""A worker whose numbers Prometheus scrapes: `worker.py`, with http://localhost:9100/metrics.

python worker_prometheus.py stomp://user:password@localhost:61613 [port]        needs: pip install prometheus-client
"""

import logging
import sys

from prometheus_client import start_http_server

import redelivery
from redelivery import Message, ReconnectPolicy, RedeliveryPolicy, Session, SharedDeadLetterStrategy
from redelivery.prometheus import PrometheusObserver


def handle(order: Message, session: Session) -> None:
    """Your code."""
    if order.body == "the moon":
        raise LookupError("no such article")
    session.producer("invoices").send(f"invoice for {order.body}")


def main(url: str, port: int) -> None:
    metrics = PrometheusObserver()
    with redelivery.connect(
        url,
        observer=metrics,
        reconnect=ReconnectPolicy(),
        redelivery_policy=RedeliveryPolicy(maximum_redeliveries=2, initial_redelivery_delay=0.5, redelivery_delay=0.5),
        dead_letter_strategy=SharedDeadLetterStrategy("ActiveMQ.DLQ"),
    ) as connection:
        metrics.watch(connection)
        server, _ = start_http_server(port, addr="127.0.0.1")
        logging.info("metrics at http://127.0.0.1:%d/metrics", server.server_port)
        connection.listener_container("orders", handle, concurrency=2, prefetch=10).run()  # until SIGTERM or Ctrl-C
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 9100)
