"""Pure decisions about redelivery and reconnecting: immutable values without I/O, clock or sleeping (floor 1).

`redelivery` says when a message that failed is redelivered and when never again, `dead_letters` where it goes then, and
`causes` and `dead_letter_headers` what is written on it. `redelivery_map`, `address_settings` and `prefetch` hold such
values by destination (`destinations/`). `reconnect` says when a lost connection is tried again. `connection_url` and
`activemq` read ActiveMQ's spelling, and `checks` says of a bad value what fits.
"""
