"""STOMP 1.2 and 1.1: frames, an engine without I/O, and the transport over it (floor 2)."""
