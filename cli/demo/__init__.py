"""``redelivery demo``: what the library does, on screen.

`flow` plays eight orders, some of which fail, and reports what happens as `events`; `view`, with `panels`, shows them
on a terminal as a `picture`, `lines` prints them for a log or a program, `tally` checks that they add up. `spark` lets
a stream read the dead letters, in a process whose program is `spark_job`.

`outage` kills a broker under a worker, and starts it again; `outage_view` shows that.
"""
