"""Inspects a queue without taking anything from it.

`browse` is `spark.read`. `capable` asks what the broker can do, `probe` whether there is anything to plan a batch for.
`depth` asks the broker how many messages there are, beside the stream, for the progress that Spark shows.
"""
