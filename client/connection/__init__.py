"""What the connections of both shells share.

| file | what it says |
|---|---|
| `lifecycle` | the lives of a connection and of a session, as tables |
| `dialing` | opening a transport, of one broker or of a list, round after round |
| `reattach` | what a session does when its connection was lost and another one comes |
| `shared` | what a connection and its sessions have in common |
| `state` | a connection's options, transport and life, and what an application can ask of them |
| `temporaries` | temporary destinations, which are made anew on another connection |
| `troubles` | the exception listener and its thread |
| `unowned` | what a transport may hold of a connection and its sessions |
"""
