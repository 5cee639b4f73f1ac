"""Translates between proton's structures and values: nothing here knows a link or a session.

`data` reads proton's structures safely; on it stand `terminus` (what a link asks for), `outcomes` (delivery states),
`messages` with its `sections`, and `conditions` (errors).
"""
