"""One socket that speaks AMQP, from the first byte to its loss.

`login` opens it: `sasl` (with `scram`) proves who we are, then both sides open the connection. From then on
`connection` owns socket and engine, and gives to each link what the peer has said to it.
"""
