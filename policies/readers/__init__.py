"""Readers of brokers' configuration files: bytes in, the values of `policies/brokers/` out.

`files` opens a file (the only I/O of `policies`), and `formats` finds out whose it is. `xml` and `json_tree` make trees
whose parts know their line. There is a reader for each broker: `activemq`, `artemis` (HornetQ too), `qpid`, `broker_j`,
`rabbitmq`, and `client_url` for the URLs of ActiveMQ's client. `expressions` refuses regular expressions that could
take for ever, and `report` collects all that is wrong, so that one error says it, with file, line and column.
"""
