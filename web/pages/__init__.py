"""The pages. Each is a function of what was asked for and of a connection, and shows what `operate` says of that.

`queues` is the first one, `letters` has those of one queue and `letter` one of them. `preview` says
what a run would do, `doing` does it, and `receipts` shows what was done. `policies` has the rules, and the doctor's
findings.
"""
