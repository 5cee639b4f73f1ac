"""Stores segments: small files that are created once and never replaced, on a disk or in an object store.

`interface` is the promise, above all `put_if_absent`; `check_create_if_absent` tries whether a place keeps it.
`local_store` keeps it with a hard link, `fsspec_store` with a conditional request.
`locations` says which file systems are known to keep what they were given; `opening` chooses the store.
"""
