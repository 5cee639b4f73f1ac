"""A broker's management over HTTP: what no messaging protocol says, or lets one do.

`address` is where it is and who asks, `http` a client of JSON over HTTP that is bounded in time and size. What a
broker's own API is called and answers is a file for each.

`declaring` is what any management does for a session, over whichever protocol: make queues, and remove them.
`over_http` does it by RabbitMQ's API. `jolokia` is Java's management over HTTP.
"""
