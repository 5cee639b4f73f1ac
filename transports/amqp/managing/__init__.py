"""Queues over AMQP, by the management node that the broker has: asked by a message, whose answer comes to a link.

`resources` are named by paths and methods, as HTTP's (RabbitMQ 4); `operations` are called by name with arguments in
JSON (Artemis); `entities` have a type and attributes (AMQP Management, which Broker-J has). `requests` is how the
last two are asked.
"""
