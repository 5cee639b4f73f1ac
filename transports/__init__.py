"""How deliveries and messages travel (floor 2).

`base` is the seam that sessions see, `delivery` what travels up through it, and `registry` finds the transport of a
URL's scheme. `stomp` and `amqp` are the protocols, over the sockets and threads of `wire`; what differs between brokers
is a table in `dialects`.
"""
