"""Dead letters on the command line: ``commands`` lists what there is.

`shown` looks at letters, `leaving` and `editing` let them leave their queue, `files` writes and reads them, `receipts`
proves, undoes and goes on with what was done; `options` has what several of them take.
"""
