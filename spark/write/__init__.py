"""The sink: rows become messages, and each task sends its own in one transaction.

`writers` is what Spark calls, for a batch and for a stream. `task` sends and commits, and says what a failed attempt
leaves. `rows` checks the columns and makes the messages.
"""
