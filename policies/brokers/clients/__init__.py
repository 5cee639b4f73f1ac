"""ActiveMQ's Java client, which redelivers by itself: what its configurations say, beside what its broker's does.

`url` has its rules and its connection URL, `spring` the files of beans that make connection factories, and
`spring_boot` the properties of an application.
"""
