"""The embedded broker's rules, pure: queues, topics, transactions, dead letters; `now` is passed in (milliseconds)."""
