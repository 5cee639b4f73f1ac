"""What tests need beside the library: the pytest plug-in, its fixtures, and the brokers behind them.

`plugin` is what pytest loads by itself; it names `fixtures`, which import nothing but pytest until one is used.
`fixtures` has an embedded broker for each test, and one of each real broker for a whole run.
`brokers/` finds, starts, kills and ends the real ones.
"""
