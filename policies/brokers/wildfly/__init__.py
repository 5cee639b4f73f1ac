"""WildFly, JBoss EAP and JBoss AS: the messaging subsystem in ``standalone*.xml``, and in profiles of ``domain.xml``.

There is an Artemis in it (``messaging-activemq``, with attributes) or a HornetQ (``messaging``, with elements), so that
`rules` are theirs, but for names: the queue ``orders`` has the address ``jms.queue.orders``. `names` has the settings,
`reader` chooses the server, `writer` writes it, and `conversion` makes such rules of others.
"""
