"""Carries deliveries and messages over a protocol (floor 2).

`seam` is what sessions see, `delivery` what travels up through it, and `registry` finds the transport of a URL's
scheme; `failover` reads lists of URLs, and says in which order they are tried. `stomp` and `amqp` are the protocols,
over the sockets and threads of `wire`; what differs between brokers is a table in `dialects`. `management` asks
brokers over HTTP for what neither of them says.
"""
