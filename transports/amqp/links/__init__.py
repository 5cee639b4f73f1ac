"""Sessions and links of an AMQP connection, each with the peer's half of it.

`endpoints` is what they have in common: they open and they end. `receivers` turn transfers into deliveries, as many as
`windows` let come, `senders` send and are answered, both by the outcomes of `dispositions`. `notifications` collects
what is to be said when the connection's lock is free; `seen` counts where the broker's own count charges too much.
"""
