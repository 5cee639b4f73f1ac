"""Clients as Spring Boot configures them: ``spring.activemq`` and ``spring.artemis`` of an application's properties.

The rules are those of a client. `keys` finds the properties in YAML and ``.properties``, by profile, and `reader` and
`writer` are of what they say about redelivery, which is in the URL but for one property.
"""
