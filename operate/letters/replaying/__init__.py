"""A replay, before it begins and while it goes on.

`planned` notes of each letter what matters then, and `forecast` says what will happen to it. `widening` sends more and
more of them, as long as none is back.
"""
