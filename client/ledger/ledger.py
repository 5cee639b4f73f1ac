"""The whole ledger; see the package's rules."""

from __future__ import annotations

from redelivery.client.ledger.redeliver import Redelivering


class Ledger(Redelivering):
    """Facts in, orders out; `take_orders` after each fact, `next_deadline` for when to `tick` again."""
