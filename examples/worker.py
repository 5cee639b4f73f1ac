"""A worker: takes orders until SIGTERM or Ctrl-C, finishes the orders being handled, and exits with 0.

python worker.py stomp://user:password@localhost:61613 [number of threads]

While the broker is away it waits; then it goes on. What it had not committed is redelivered.
"""

import logging
import sys

from redelivery import App, Message, RedeliveryPolicy, Session, SharedDeadLetterStrategy


def handle(order: Message, session: Session) -> None:
    """Your code: what it raises is the cause of the redelivery, and in the end of the dead letter."""
    if order.body == "the moon":
        raise LookupError("no such article")
    # The order is consumed and the invoice is sent, or neither.
    session.producer("invoices").send(f"invoice for {order.body}")


def make_app(url: str, threads: int = 1) -> App:
    app = App(
        url,
        redelivery_policy=RedeliveryPolicy(
            maximum_redeliveries=3, use_exponential_back_off=True, back_off_multiplier=2
        ),
        dead_letter_strategy=SharedDeadLetterStrategy("ActiveMQ.DLQ"),
    )
    app.listener("orders", concurrency=threads, prefetch=10)(handle)
    return app


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    make_app(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1).run()
