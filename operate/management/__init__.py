"""A broker's management: its queues, and a look into them where the messaging protocol has no browser.

`interface` is what each broker's management can be asked, `opening` finds that of a connection. `rabbitmq` asks
RabbitMQ's, by `redelivery.transports.management`; what it shows of a message becomes what would have been received, by
`as_stomp` or `as_amqp`.
"""
