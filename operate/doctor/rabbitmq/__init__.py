"""The doctor on RabbitMQ.

`configured` says what its rules lead to, whether a file of definitions or the broker itself gives them. `over_http`
asks its management: for all rules and queues, who reads streams, deprecated features, and who is logged in as guest.
Without that, `over_amqp` asks RabbitMQ 4 for the queues that are named. `reported` says what is wrong with what was
reported; it is pure, as `configured` is.
"""
