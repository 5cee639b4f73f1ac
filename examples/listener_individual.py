"""Handle messages on two sessions at once, each with a listener that acknowledges each message when it is done.

python listener_individual.py                                      # a broker in this process
python listener_individual.py stomp://user:password@localhost:61613
"""

import sys
import threading

import redelivery
from redelivery import Message, RedeliveryPolicy

QUICK = RedeliveryPolicy(initial_redelivery_delay=0.1, redelivery_delay=0.1)
PARCELS = tuple(f"parcel {number}" for number in range(1, 9))


class Depot:
    """The handler. Two sessions call it, so it protects its own state."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._delivered: set[str] = set()
        self.complete = threading.Event()

    def handle(self, parcel: Message) -> None:
        if parcel.body.endswith("5") and not parcel.redelivered:
            raise ConnectionError("nobody at home")  # not acknowledged: redelivered by the policy
        parcel.acknowledge()
        with self._lock:
            print(f"{parcel.body}, delivery {parcel.delivery_count}: delivered")
            self._delivered.add(parcel.body)
            if self._delivered.issuperset(PARCELS):
                self.complete.set()


def main(url: str) -> None:
    depot = Depot()
    with redelivery.connect(url, redelivery_policy=QUICK, prefetch=1) as connection:
        with connection.session() as session:
            for parcel in PARCELS:
                session.producer("example.parcels").send(parcel)
        for _ in range(2):  # a session calls from one thread; two sessions work in parallel
            connection.session("individual").consumer("example.parcels").listen(depot.handle)
        if not depot.complete.wait(timeout=10):
            sys.exit("not every parcel was delivered within 10 s")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "vm://example")
