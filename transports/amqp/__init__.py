"""AMQP 1.0: messages read and written by hand, proton as the protocol engine, and the adapter that joins them."""
