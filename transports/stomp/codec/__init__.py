"""Bytes and what they mean, both ways; nothing here reads a socket, waits, or knows a subscription.

`reader` cuts frames from a stream, `frames` reads and writes their heads, `control` the rare ones. `messages` is a
MESSAGE read lazily, as the `formats` of its subscription say, with heads that are `alike`, and `sends` a message as a
SEND; `maps` and `names` are their parts, and `errors` says what an ERROR means.
"""
