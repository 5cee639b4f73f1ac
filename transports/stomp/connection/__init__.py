"""One socket that speaks STOMP, from CONNECT to its loss.

`login` shakes hands with the help of `engine`, the protocol without I/O. Then `connection` owns the socket, and
`router` brings each frame where it belongs: a MESSAGE to the inbox of its subscription (`subscriptions`), an answer to
its request. `redelivered_ids` remembers what was delivered before, where the broker does not say.
"""
