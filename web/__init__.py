"""The console: dead letters in a browser, as pages that a server writes; what they show is a function of `operate`.

`sites` are the brokers, `calls` ask them in threads, `guard` lets nobody in who should not be, and nothing out that a
message could do harm with. `application` puts the `pages` together, `rendering` and `drawing` write them, `server` and
`mounting` serve them: as a program of their own, or within an application.
"""

from redelivery.web.mounting import mount

__all__ = ["mount"]
