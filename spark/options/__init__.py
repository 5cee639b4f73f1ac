"""The options of a query, and the connections that are made as they say.

`table` and `places` list them: name, default, meaning; `values` parses what was typed; `names` knows other names.
`query` is what the rest of the room is given: options that are checked, before any broker is reached; `subscriptions`
checks those of topics, and `credentials` reads passwords and certificates from files. `reconnect` makes a connection,
and another one with back-off until `maxReconnectTime` is up.
"""
