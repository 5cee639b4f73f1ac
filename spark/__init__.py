"""The Spark source and sink `jms`, on transacted sessions; Spark finds it through `pyspark_redelivery`."""
