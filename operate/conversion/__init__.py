"""A configuration in another format: what it means is kept, and what the other one cannot say is said.

Between brokers the way leads over what a client would need: `patterns` gives each pattern's redelivery policy,
dead-letter strategy and times to live, of which `to_brokers` and `address_settings` make the rules of another broker,
and `to_python` a program. `related` converts between Artemis and HornetQ, setting by setting. `unsaid` says what that
leaves out, with a function for each format that is read, and `losses` collects it.
"""
