"""For tests, beside the library: the pytest plug-in, its fixtures, a clock to put ahead, and real brokers.

`plugin` is what pytest loads by itself; it names `fixtures`, which import nothing but pytest until one is used.
`fixtures` has an embedded broker for each test (`durable`: with a store, to be killed), and one of each real broker for
a whole run.
`brokers/` finds, starts, kills and ends the real ones. `fast_forward` gives a clock that the test puts ahead.
"""

from __future__ import annotations

from redelivery.testing.clock import FastForward, fast_forward

__all__ = ["FastForward", "fast_forward"]
