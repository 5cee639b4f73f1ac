"""``redelivery doctor``: what will hurt, before it does.

`findings` is what it says. `addresses` checks the URL, `configured` the broker's rules, `observed` what the broker
reports of its queues and its clock, and `chosen` says which queues are of interest; all four are pure. `inspect`
connects and asks: Artemis by its `management` and `broker_j` by its own, over AMQP, Classic by its `statistics`, or an
`embedded` broker of this process. `doctor` puts all together.
"""
