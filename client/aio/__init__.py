"""The shells for asyncio: what an application holds, page by page as in `client.sync`.

Each call takes the session (`core`), awaits one operation of `client.operations` by the `driver`, and gives the session
back. A task is cancelled where it awaits and nowhere else; so what lies between two awaits is whole.
"""
