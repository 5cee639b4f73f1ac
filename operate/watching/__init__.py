"""Watching a broker's queues, or what an application makes of them, by one look after the other.

`rates` has what one look shows, and what two of them say together: pure. `broker` looks at a broker's queues, as its
management or protocol gives them, and `app` at the page of metrics that an application serves. No look takes a message,
counts as a delivery, or waits without a bound.
"""
