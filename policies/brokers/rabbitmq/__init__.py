"""RabbitMQ's rules: policies by regular expression and priority, arguments of queues, and where its exchanges lead.

`values` is what a file of definitions holds. `effective` says which of a queue's arguments, its policy and the
operator's one count, and `routes` to which queues an exchange leads. `after` follows a dead letter that does not stay
where it went, and `notes` has what else there is to know. `rules` puts all together for one queue. `names`, `reader`
and `writer` are of the file, and `conversion` makes such rules of others.
"""
