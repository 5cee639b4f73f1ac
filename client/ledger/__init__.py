"""The session's ledger: facts in, orders out, no clock, thread or wire.

| file | the question that it answers |
|---|---|
| `entries` | what is known of a consumer and of a delivery, and which orders there are |
| `held` | which deliveries are where; which one is handed out next |
| `acknowledge` | which deliveries an acknowledgement, a commit or a close covers |
| `redeliver` | what becomes of a delivery that failed: again when, or dead-lettered why |
| `expire` | which messages are not handed out any more |

Rules:

1. A delivery is in exactly one place: ready (of its consumer), held (by the application), delayed (non-blocking), or
   gone from the ledger.
2. Nothing is acknowledged that the application did not acknowledge; in AUTO and DUPS_OK having the message does it.
3. Every message is poisoned by its own count, `wire_count - 1` plus its local redeliveries.
4. Blocking redelivery puts a batch back at the head, in order, and stops its consumer for the delay of the batch's
   newest message; non-blocking appends it at the tail when the delay is over.
5. Orders are carried out in the order in which they are given, before the next fact. What the application settles
   itself (`take`, `consumed`, `acknowledge`, `covered`) is told to the broker by the caller, before the orders.
6. Only one thread at a time is inside; the session sees to that.
"""

from redelivery.client.ledger.entries import (
    Detach,
    Order,
    Park,
    Poison,
    Release,
    State,
    Station,
    Unpark,
)
from redelivery.client.ledger.ledger import Ledger

__all__ = ["Detach", "Ledger", "Order", "Park", "Poison", "Release", "State", "Station", "Unpark"]
