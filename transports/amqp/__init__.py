"""AMQP 1.0 (floor 2).

`engine` is proton as a protocol engine without I/O, `codec` the messages, which proton need not read. `connection` logs
in and owns the socket, `links` are what lives on it, `channel` is one session's side of it, and `adapter` the
transport.
"""
