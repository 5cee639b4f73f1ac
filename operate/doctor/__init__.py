"""``redelivery doctor``: what will hurt, before it does.

`findings` is what it says. `addresses` looks at the URL, `configured` at the broker's rules, `observed` at what the
broker reports of its queues and its clock; all three are pure. `inspect` connects and asks, by `management` over AMQP
where the broker allows it; `doctor` puts all together.
"""
