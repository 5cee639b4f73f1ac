"""The session's ledger: facts in, orders out, no clock, thread or wire.

| file | the question that it answers |
|---|---|
| `state`, `stages` | what is known of a delivery and of a consumer, and what may happen to a consumer |
| `redelivery` | may it be shown; what happens to a batch that failed: again when, or dead-lettered why |
| `ledger` | which deliveries are where, which one is dispatched next, what an acknowledgement or a close covers |
| `orders` | what the session must do at the broker |
| `parking` | what a container keeps back, uncounted, while it tries others |
| `history` | how often the connection has delivered a message, over its losses |

Rules:

1. A delivery is in exactly one place: ready (of its consumer), held (by the application), delayed (non-blocking), or
   gone from the ledger.
2. Nothing is acknowledged that the application did not acknowledge; in AUTO and DUPS_OK having the message does it.
3. Every message is poisoned by its own count, that of its `proven` deliveries plus its local redeliveries.
4. Blocking redelivery puts a batch back at the head, in order, and stops its consumer for the delay of the batch's
   newest message; non-blocking appends it at the tail when the delay is over.
5. Orders are carried out in the order in which they are given, before the next fact. What the application settles
   itself (`take`, `consumed`, `acknowledge`, `covered`) is passed to the broker by the caller, before the orders.
6. Only one thread at a time is inside; the session sees to that.
7. What a delivery keeps for the ledger (`state`, `redeliveries`, `earlier`, `cause`, `attempts`) is written here alone,
   but for one case: in AUTO `operations/acknowledge.py` writes ACCEPTED itself, as a call takes half a percent of the
   time of a message there.

What the application is done with:

| mode | covered |
|---|---|
| AUTO, DUPS_OK | each delivery, when the application has it (JMS 3.1, §6.2.10) |
| CLIENT | everything held by the session, of all its consumers (JMS 3.1, `Message.acknowledge`) |
| INDIVIDUAL | the one delivery |
| TRANSACTED | everything held, at commit |
"""

from redelivery.client.ledger.ledger import Ledger
from redelivery.client.ledger.orders import Detach, Order, Park, Poison, Release, Unpark
from redelivery.client.ledger.redelivery import BY_POLICY, Ruling
from redelivery.client.ledger.state import ConsumerState, Received, State

__all__ = [
    "BY_POLICY",
    "ConsumerState",
    "Detach",
    "Ledger",
    "Order",
    "Park",
    "Poison",
    "Received",
    "Release",
    "Ruling",
    "State",
    "Unpark",
]
