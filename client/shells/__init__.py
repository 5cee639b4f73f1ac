"""The part of `client.sync` and `client.aio`, as an application holds it, that does not wait.

Each class here is the first base of the class of the same name in both: its properties, its checks, the errors of one
that is closed, and what a call makes of what has come. The two shells add the calls that wait. A connection's part is
in `client.connection.state`.
"""
