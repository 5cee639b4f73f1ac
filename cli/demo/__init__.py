"""``redelivery demo``: what the library does, on screen.

`orders` plays eight orders, some of which fail; `spark` lets a stream read the dead letters, in a process whose program
is `spark_job`. `outage` kills a broker under a worker, and starts it again. Both listen to the
library's events as a `story`, which counts them and reports them in steps; `view` shows a step, wherever it is printed.
"""
