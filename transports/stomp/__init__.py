"""STOMP 1.2 and 1.1 (floor 2).

`codec` turns frames into bytes and back; `connection` speaks to one socket and routes what comes; `channel` is one
session's side of it. `wires` says which session has which socket, and `adapter` is the transport.
"""
