"""One session at the broker over AMQP: what is written when, and which answer is awaited.

`channel` is the session's side of the seam and acknowledges, `context` what its parts share. It sends by `sending`.
`detaching` ends receivers so that each delivery is released with the count
that it has earned, `browsing` shows a queue, and `transactions` declare and discharge.
"""
