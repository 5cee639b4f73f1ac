"""AMQP 1.0 over Qpid Proton's engine; needs the extra ``redelivery[amqp]``.

`sasl` admits the client, `socket` carries its bytes to proton and back, `session` makes `commands` of proton's events
and executes them, by `links` and `transactions`. `codec` is what travels: messages, outcomes, termini, conditions.
"""
