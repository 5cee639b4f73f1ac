"""ActiveMQ Classic: dead-letter strategies by destination, and the plug-ins that redeliver or discard.

`rules` says what they mean for a destination. `names`, `reader` and `writer` are of its ``activemq.xml``, and
`conversion` makes such rules of others, and says what others leave out.
"""
