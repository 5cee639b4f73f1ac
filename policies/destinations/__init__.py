"""Values by destination: by exact name, or by pattern.

`patterns` says which names a pattern covers, and which of two patterns is the more specific one. `map` holds a value
for each pattern and finds the one that counts for a destination, and `explain` says why it does. `redelivery_map` holds
redelivery policies so, as ActiveMQ does, `strategy_map` dead-letter strategies, and `address_settings` Artemis'
settings, which are merged field by field.
"""
