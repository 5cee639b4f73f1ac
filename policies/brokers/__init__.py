"""Brokers' files about redelivery and dead letters: a folder for each broker, and a row for each format in one table.

`formats` is the table: how a format is recognized, read, written, made of others, and what others leave out of it.
`rules` is what all brokers' rules answer for one destination, in the same words; `hosts` is what those with virtual
hosts share. `policies` is what `redelivery.policies.read` returns: rules, and what was skipped. `files` opens a file
(the only I/O of `policies`), and `patterns` is the bridge from one format to another.
"""
