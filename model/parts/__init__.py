"""The parts that `messages` is built on.

`errors` are those that messages and destinations raise. `dead_letters` reads what a dead letter says of itself, and
`shown` puts a message into one line. `sending` has what a send may be given.
`callables` looks at callbacks, `texts` at encodings.
"""
