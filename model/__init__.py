"""Immutable values and the errors; nothing here acts (floor 0).

`messages` is what travels, with `values` as JMS types them, to `destinations`; `parts/` is what a message is built on,
and `selectors/` how a consumer chooses among them. `modes` and `capabilities` are what sessions and brokers can do.
`errors` has every error, also those of `parts`. `suggestions`, `times` and `version` serve all.
"""
