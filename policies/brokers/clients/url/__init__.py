"""A connection URL of ActiveMQ's Java client, which says when the client itself redelivers.

`rules` says what it means for a destination. `reader` and `writer` are of its ``jms.*`` options, and `conversion` makes
one of other rules, and says what others leave out.
"""
