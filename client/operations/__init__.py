"""The operations of a session, as generators: no thread, no task, no clock but `SessionState.now`.

A flow yields what it waits for (`redelivery.transports.seam.Wish`) and a driver, of threads or of an event loop, waits.
An interrupt, or a cancelled task, reaches a flow as an exception thrown in at its yield. What is on the path of every
message (`next_ready`, `accept`, `send`) is a plain function: a message that has arrived costs no generator.
The ledger's orders are carried out by the driver's side, one flow each, after the operation that caused them.
"""
