"""Connections under threads: who reads, who waits, and who does what no application thread is there to do.

Each thread that waits parks at its `waiter`. One of them is the `leader` and reads for all. Where nobody waits, the
thread of `housekeeping` reads, and keeps the timers. `guard` keeps signals away from what must not be torn.
"""
