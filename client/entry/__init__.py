"""The entry of an application: connections, their factories and `App`, for threads and for asyncio.

A Connection makes sessions and listener containers, so it stands above both; `client.connection` has what happens to it
when it is dialled, lost and moved.
"""
