"""A worker: takes orders until SIGTERM or Ctrl-C, finishes the order in hand, and exits with 0.

python worker.py stomp://user:password@localhost:61613 [number of threads]

If the connection is lost it exits with 1: let systemd, Kubernetes or supervisord start it again. What it had not
committed is redelivered.
"""

import logging
import signal
import sys
import threading

import redelivery
from redelivery import Connection, JMSError, Message, RedeliveryPolicy, SharedDeadLetterStrategy

log = logging.getLogger("worker")
stopping = threading.Event()
failed = threading.Event()


def handle(order: Message) -> str:
    """Your code: whatever it raises is the cause of the rollback."""
    if order.body == "the moon":
        raise LookupError("no such article")
    return f"invoice for {order.body}"


def work(connection: Connection) -> None:
    """One thread, one session."""
    with connection.session("transacted") as session:
        orders, invoices = session.consumer("orders"), session.producer("invoices")
        while not stopping.is_set():
            order = orders.receive(timeout=0.5)  # so that it sees `stopping` twice a second
            if order is None:
                continue
            try:
                invoices.send(handle(order))
            except JMSError:
                raise  # the broker's fault, not the order's
            except Exception as error:
                log.exception("order %s failed", order.message_id)
                session.rollback(cause=error)  # redelivered after the policy's delay, or dead-lettered
            else:
                session.commit()  # the order is consumed and the invoice is sent, or neither


def run(connection: Connection) -> None:
    try:
        work(connection)
    except JMSError:  # the connection was lost, or a commit is in doubt
        log.exception("this worker ends")
        failed.set()
        stopping.set()


def main(url: str, threads: int = 1) -> int:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    policy = RedeliveryPolicy(maximum_redeliveries=3, use_exponential_back_off=True, back_off_multiplier=2)
    with redelivery.connect(
        url, redelivery_policy=policy, dead_letter_strategy=SharedDeadLetterStrategy("ActiveMQ.DLQ"), prefetch=10
    ) as connection:
        workers = [threading.Thread(target=run, args=(connection,)) for _ in range(threads)]
        for worker in workers:
            worker.start()
        log.info("ready")
        for worker in workers:
            worker.join()
    return 1 if failed.is_set() else 0


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1))
