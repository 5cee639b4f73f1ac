"""The Spark source and sink `jms`, on transacted sessions; Spark finds it through `pyspark_redelivery`.

`source` is what Spark asks first. `options/` reads what the user has set, and makes the connections.
`read/` receives messages in transactions, `rows/` makes them rows, and `log/` keeps the rows in segments: files that
are written once, from which every attempt reads the same.
`write/` sends rows, one transaction a task.
"""
