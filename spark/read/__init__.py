"""The source: messages become segments, and segments become the rows of a batch.

`stream` is what both receivers share. `driver` receives all the time in the query's own process: `lanes` starts one
`lane` as a thread, or several as processes (`lane_process`). `executor` has each task receive its share of a batch.
`receiving/` is one session that receives a batch of messages at a time; `inspect/` asks what a queue holds.
`offsets` are what Spark keeps in its checkpoint; `attempts` counts the batches that fail again and again. `refused`
is the reader of a stream that cannot begin.
"""
