"""Qpid's old Java broker: a maximum delivery count and dead-letter queues at three levels.

`rules` says what they mean for a queue. `names`, `reader` and `writer` are of its ``config.xml`` and
``virtualhosts.xml`` (0.1x), and `conversion` makes such rules of others, and says what others leave out.
"""
