"""Clients of ActiveMQ as beans of Spring or blueprint: connection factories with their redelivery policies.

The rules are those of a client. `names` has the classes, `beans` makes beans and their properties of elements, in the
order in which a container sets them, and `reader`, `writer` and `conversion` are of the factories.
"""
