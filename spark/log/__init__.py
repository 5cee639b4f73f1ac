"""The log between broker and Spark: segments that are written once, read any number of times, then deleted.

`wal` is what everybody else uses; it says what makes it lose and duplicate nothing. `names` lists the files, `segments`
is the format of one. `commits` records which segments a batch was made of, `uncommitted` which messages may be
redelivered although they are in a segment. `epochs` and `claims` say which query may write; `chain` is the log of
`receiver=driver`. `damage` finds what is missing. The files are in a `store/`: a folder, or an object store.
"""
