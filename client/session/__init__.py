"""The inside of a session, which its operations work on; no thread and no task waits here.

`state` has the ledger, the channel and the modes; `inbox` what other threads have notified it of; `unanswered` the
asynchronous sends; `epoch` its part in the connection to a broker now. `shared`, `subscriptions` and `temporaries` are
what the sessions of one connection have in common.
"""
