"""The client: sessions whose redelivery means the same on every broker.

`ledger` decides what happens to each delivery; `operations` are what a session does, as generators over `state`;
`connection` is what a loss means for it. `sync` and `aio` are the shells, for threads and for tasks, which alone wait;
what they have in common is in `shells`, and `containers` stand on them. `epoch` is a session's part in one connection,
and what it is notified of; `options` and `arguments` are what the application has given, checked; `observing`
notifies the log and an observer.
"""
