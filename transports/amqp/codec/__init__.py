"""Bytes and what they mean, both ways; nothing here needs a connection, a link or proton.

`primitives` and `values` read AMQP's types and `encoding` writes them. `sections` finds the parts of a message, while
`bodies`, `ids` and `names` read them as JMS does. `messages` is a message read lazily and `sends` one written. `errors`
says what an error condition means.
"""
