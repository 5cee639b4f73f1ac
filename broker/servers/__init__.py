"""The embedded broker on sockets: one `listener` thread per protocol serves all of its clients.

`stomp` and `amqp` make of a client's bytes what the engine is asked for, and of its dispatches what the client reads.
Each reads from the socket inwards: socket, session, then subscriptions or links, then the engine behind `Core`.
"""
