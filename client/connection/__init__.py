"""The machinery of a connection, which the public connections of both shells have.

| file | what it says |
|---|---|
| `state` | a connection's options, transport and life |
| `reconnecting` | what a loss, another transport, and a move mean for the connection |
| `dialing` | opening a transport, of one broker or of a list, round after round |
| `priority` | the search for a priority broker, and the move to it |
| `replies` | requests that wait for their replies |
| `threads` | the exception listener's thread, and those that wait for the connection |
| `weak` | the events of a transport, which keep no connection alive |
"""
