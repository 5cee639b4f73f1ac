"""Message selectors (JMS 3.1 §3.8.1): the subset of SQL-92's conditions by which a consumer chooses its messages.

`selector` has what others use: it is parsed once, and then asked about messages. `parsing` has the
whole syntax and reads a selector by it, with lark, which is imported with the first selector, or shows where it is
wrong; `building` makes the tree a function, of `logic` with three values, of `numbers` as Java promotes and compares
them, and of `patterns` for LIKE.
"""
