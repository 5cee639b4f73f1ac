"""Brokers' own rules for what clients do not acknowledge: count, wait, redeliver, give up, dead-letter.

`rules` says what the engine asks, and in which manner a delivery can be returned. `classic` has ActiveMQ's answers,
which count where no configuration file was given; `artemis` those of Artemis and HornetQ, `limits` those of the brokers
that only count (Qpid, Broker-J, RabbitMQ). `chosen` picks one by the file that was read.
"""
