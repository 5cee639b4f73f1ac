"""Artemis and HornetQ: address settings that are merged field by field, and the queues that a file makes.

`rules` says what they mean for a destination. `names`, `reader` and `writer` are of ``broker.xml`` and of
``hornetq-configuration.xml``, `conversion` makes such rules of others, and `related` those of one of the two of the
other's, setting by setting. `properties` is of ``broker.properties``, which Artemis puts upon its ``broker.xml``.
"""
