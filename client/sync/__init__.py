"""The shells for threads: what an application holds.

Each call takes the session (`core`), runs one operation of `client.operations` with the `driver`, which waits for what
the operation wishes, and gives the session back. Nothing here decides what a call means; what is here is who may come
in, and that an interrupt (Ctrl-C) at any moment loses nothing.
"""
