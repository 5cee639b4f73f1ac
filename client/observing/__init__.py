"""Reports a session's work beside it.

`log_lines` are the lines of the log, with the ids that an operator looks for; `observed` makes events for the observer
that the application has given, and `traced` notifies one that follows work of the begin and end of each step. None of
them changes what happens: an observer that raises is logged once.
"""
