"""A message as a row and a row as a message: no connection, no file.

`schema` says which columns there are; `check` refuses a schema or a segment that has others.
`from_message` makes a row, `to_message` a message; in `columns` the rows become Arrow's batches.
`bodies` and `variants` say how a body and a property's value are written.
`digests` tells one message from another when it is redelivered.
"""
