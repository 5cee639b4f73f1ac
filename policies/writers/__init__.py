"""Writers of brokers' configuration files: the values of `policies/brokers/` in, the broker's own format out.

`formats` chooses the writer: `artemis` (HornetQ too), `activemq`, `qpid`, `broker_j`, `rabbitmq`, and `client_url` for
a connection URL. `xml_text` makes XML. What was read, written and read again is equal; what a format cannot hold is a
ConfigError.
"""
