"""Dialects: the meaning of the protocols for each broker, one table per broker, read by both protocols.

A broker's name stands here and nowhere else below the sessions. `dialect` says what each field means, `detect` which
table is a broker's, and `refusals` what brokers write when they refuse.
"""
