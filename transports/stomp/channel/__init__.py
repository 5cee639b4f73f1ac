"""One session at the broker over a wire: what is written when, and which answer is awaited.

`channel` is the session's side of the seam, `context` what its parts share. Subscriptions begin and end in
`subscribing`, their windows are counted in `windows`, and `browsing` shows a queue. `transactions` are bytes
and what they cover; `commits` are the flows that end them.
"""
