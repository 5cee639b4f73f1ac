"""Peers that out-run any Python client, each in a process of its own: they are no brokers, they only talk like one."""
