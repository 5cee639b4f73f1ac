"""Connections under an event loop: the loop reads, writes and keeps the time; no thread is there for it.

A task that waits parks at its `waiter`. `runtime` is what a connection needs of the loop, `opening` what one that is
being opened waits for.
"""
