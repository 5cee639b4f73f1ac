"""``redelivery top``: queues, or an application's destinations, look after look.

`top` is the command and what it does where the connection is lost; `views` prints a look: on a screen of a terminal,
as a plain table elsewhere, or as a line of JSON. `screen` is that of the terminal, which it leaves as it was. What
there is to be seen is found out by `redelivery.operate.watching`.
"""
