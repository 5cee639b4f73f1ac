"""ActiveMQ's names of options, its lists of URLs in one URL, and its arithmetic of delays.

`redelivery_names` has the bean properties of a redelivery policy, `reconnect_names` the options of the failover
transport, both in milliseconds. `composite_url` splits the list of a ``failover:`` URL. `back_off` is the arithmetic of
delays, and of Artemis' redelivery delay. `causes` is what is written on a dead letter about why it is one.
"""
