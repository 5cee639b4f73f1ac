"""Immutable values and the errors; nothing here acts (floor 0).

`messages` is what travels, with `values` as JMS types them and the `content/` that it holds, to `destinations`;
`selectors/` is how a consumer chooses among them; `passport/` says why one could not be handled. `modes` and
`capabilities` are what sessions and brokers can do, `events` and `tracing` what an observer is given. `errors` has
every error, also those of `content/`. `callables` looks at callbacks, and `suggestions` and `version` serve all.
"""
