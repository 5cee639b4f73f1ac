"""Qpid Broker-J: maximumDeliveryAttempts and the alternate binding of each queue, and context variables.

`rules` says what they mean for a queue. `names`, `reader` and `writer` are of its JSON, and `conversion` makes such
rules of others, and says what others leave out.
"""
