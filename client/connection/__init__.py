"""The part that the connections of both shells share.

| file | what it says |
|---|---|
| `lifecycle` | the lives of a connection and of a session, as tables |
| `channels` | a session's channel, on this connection or on the next |
| `coming_back` | what a loss, another transport, and a move mean for the connection |
| `dialing` | opening a transport, of one broker or of a list, round after round |
| `priority` | the search for a priority broker, and the move to it |
| `reattach` | what a session does when its connection was lost and another one comes |
| `replies` | requests that wait for their replies |
| `shared` | what a connection and its sessions have in common |
| `state` | a connection's options, transport and life, and what an application can ask of them |
| `temporaries` | temporary destinations, which are made anew on another connection |
| `threads` | the exception listener's thread, and those that wait for the connection |
| `unowned` | what a transport may hold of a connection and its sessions |
"""
