"""Immutable values and the errors; nothing here acts (floor 0).

`messages` is what travels, with `values` as JMS types them, to `destinations`; `sending` has what a send may be given,
and `parts/` what a message is built on. `modes` and `capabilities` are what sessions and brokers can do.
`errors` has every error, also those of `parts`. `suggestions`, `times` and `version` serve all.
"""
