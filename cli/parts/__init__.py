"""The parts that several commands share.

`shown` writes what others have said so that a terminal shows it and obeys none of it; `broker` is how a broker is named
and reached; `work` takes letters from a queue and says how far it is, `canary` watches the first of them, `progress`
shows how far it is, and `tables` prints what belongs together in columns.
"""
