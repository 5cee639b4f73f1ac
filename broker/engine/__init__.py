"""The embedded broker's rules, pure: queues, topics, transactions, dead letters; `now` is passed in (milliseconds).

`engine` is what the servers and ``vm://`` call. It checks, then lets `moves` change the `state`: messages (`stored`)
stand as `entries` in `queues`, and go out to `subscriptions` as dispatches; a subscription to a topic is a queue, too.
`transactions` hold sends and acknowledgements until their commit, `deadlines` what becomes due, and `dead_letters`
decides what is kept of the rest.
"""
