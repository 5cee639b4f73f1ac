"""The client: sessions whose redelivery means the same on every broker.

`ledger` decides what becomes of each delivery; `operations` are what a session does, as generators over `state`;
`sync` are the shells for threads, which alone wait. What lies beside them is shared: options and arguments, the lives
of connections and sessions (`lifecycle`), what threads tell a session (`news`), dead letters and the log's lines.
"""
