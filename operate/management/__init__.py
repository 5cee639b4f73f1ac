"""A broker's management: its queues, and a look into them where the messaging protocol has no browser.

`interface` is what each broker's management can be asked, `opening` finds that of a connection, and `browsing` looks
into a queue by it or by the protocol. `rabbitmq` asks RabbitMQ's, by `redelivery.transports.management`; what that has
`shown` of a message becomes what would have been received, by `as_stomp` or `as_amqp`.
`artemis` asks Artemis' console, and `as_artemis` reads what that shows.
"""
