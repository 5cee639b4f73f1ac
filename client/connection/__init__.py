"""What the connections of both shells share.

| file | what it says |
|---|---|
| `lifecycle` | the lives of a connection and of a session, as tables |
| `state` | a connection's options, transport and life, and what an application can ask of them |
| `unowned` | what a transport may hold of a connection and its sessions |
"""
