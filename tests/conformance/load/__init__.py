"""The parts of test_load.py: what the process uses while something is repeated, and the page about it.

`used` measures memory, descriptors and threads, and finds what each repetition adds; `page` is docs/load.md.
"""
