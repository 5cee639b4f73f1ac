"""Take orders and write invoices, each pair in one transaction; redeliver what fails, dead-letter what keeps failing.

python consume_transacted.py                                      # a broker in this process
python consume_transacted.py stomp://user:password@localhost:61613
"""

import sys

import redelivery
from redelivery import Message, RedeliveryPolicy, Session, SharedDeadLetterStrategy

QUICK = RedeliveryPolicy(
    maximum_redeliveries=2, initial_redelivery_delay=0.1, use_exponential_back_off=True, back_off_multiplier=3
)


def write_invoice(session: Session, order: Message) -> None:
    if order.body == "the moon":
        raise LookupError("no such article")
    if order.body == "a table" and not order.redelivered:
        raise TimeoutError("the bank did not answer")
    session.producer("example.invoices").send(f"invoice for {order.body}", correlation_id=order.message_id)


def main(url: str) -> None:
    with redelivery.connect(
        url, redelivery_policy=QUICK, dead_letter_strategy=SharedDeadLetterStrategy("example.DLQ")
    ) as connection:
        with connection.session() as session:
            for article in ("a chair", "a table", "the moon", "a lamp"):
                session.producer("example.orders").send(article)

        with connection.session("transacted") as session:
            consumer = session.consumer("example.orders")
            while order := consumer.receive(timeout=1):
                try:
                    write_invoice(session, order)
                except (LookupError, TimeoutError) as error:
                    session.rollback(cause=error)  # redelivered after the policy's delay
                    print(f"{order.body}, delivery {order.delivery_count}: {error}")
                else:
                    session.commit()  # the order is consumed and the invoice is sent, or neither
                    print(f"{order.body}, delivery {order.delivery_count}: done")

        with connection.session() as session:
            for queue in ("example.invoices", "example.DLQ"):
                consumer = session.consumer(queue)
                while message := consumer.receive(timeout=1):
                    print(f"{queue}: {message.body}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "vm://example")
