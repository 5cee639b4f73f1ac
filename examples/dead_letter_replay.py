"""Send dead letters back to their original queue, each in one transaction, so that it is always in exactly one queue.

python dead_letter_replay.py stomp://user:password@localhost:61613 [dead-letter queue]
"""

import sys

import redelivery
from redelivery import JMSError
from redelivery.policies.dead_letter_headers import application_properties


def replay(url: str, dead_letter_queue: str = "ActiveMQ.DLQ") -> int:
    """Return how many were sent back. Stop at a message that does not say where it came from."""
    count = 0
    with redelivery.connect(url) as connection, connection.session("transacted") as session:
        consumer, producer = session.consumer(dead_letter_queue), session.producer()
        while letter := consumer.receive(timeout=1):
            origin = letter.dead_letter.origin if letter.dead_letter else None
            if origin is None:
                session.rollback()
                print(f"{letter.body!r} does not say where it came from", file=sys.stderr)
                break
            again = letter.copy()
            again.properties = application_properties(letter.properties)  # without cause, origin and count
            producer.send(again, origin)
            session.commit()
            count += 1
            print(f"{letter.body!r} goes back to {origin}")
    return count


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    try:
        replay(*sys.argv[1:3])
    except JMSError as error:
        sys.exit(f"dead_letter_replay: {error}")
