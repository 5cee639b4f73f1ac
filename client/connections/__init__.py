"""The public connections and their factories, for threads and for asyncio.

A Connection makes sessions and listener containers, so it stands above both; `client.connection` has what happens to it
when it is dialled, lost and moved.
"""
