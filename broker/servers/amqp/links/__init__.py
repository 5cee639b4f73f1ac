"""The links of one AMQP client, each a `link.BrokerLink`.

By `incoming` ones the client sends, and declares and discharges transactions. By outgoing ones it receives: a
`consumer` takes messages away, a `browser` shows them.
"""
