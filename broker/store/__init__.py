"""Keeps an embedded broker's messages beyond its own life.

The engine notifies a `journal` of what it does; `sqlite` is one in a file, and notes it in a `batch`, which is written
with one sync for all callers that wait. `schema` opens that file, and refuses what it must not touch. `encoding` has
messages as bytes, and `bodies` the large ones; `paging` decides how much of a long queue is in memory.
"""
