"""Receipts: what a run has done to which letters, so that it can be proved, undone, and gone on with after a kill.

`receipt` reads one, and `writer` writes it. `proving` counts its letters at the broker; `resuming` goes on with a run,
and `undoing` puts letters back; `importing` sends those of a file.
"""
