"""What the files of brokers say about redelivery and dead letters, as immutable values that every reader fills.

`policies` is what `redelivery.policies.read` returns: a broker's rules, and what was skipped. Each broker has its own
values, which keep the file's own names and the place of each setting: `artemis` (HornetQ as well), `classic`, `qpid`
(the old Java broker), `broker_j`, `rabbitmq` and `client_url`. `rules` is what they all answer for one destination, in
the same words; `places` says where something stands in a file.
"""
