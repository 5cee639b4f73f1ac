"""One session of the source: it receives messages, makes them a segment's bytes, and commits when those are durable.

`batch_receiver` has the connection and the transaction, `consumer_group` the consumers of several destinations, and
`consumer_rules` their window and policy.
`keeping_up` sees whether there is a backlog.
`received_batch` is what they return, encoded while it receives. `duplicates` drops messages that are in a segment
already; `bad_messages` is what happens to those that cannot be a row.
"""
