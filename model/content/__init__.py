"""The content of a message, beside the values of its properties.

`headers` are those that an application sets, and the keywords of a send; `bodies` is a body as it came over a wire;
`dead_letters` reads what a dead letter says of itself, and `shown` puts a message into one line. `errors` are those of
messages and destinations.
"""
