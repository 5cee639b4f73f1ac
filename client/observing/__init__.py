"""What is said of a session's work beside it.

`log_lines` are the lines of the log, with the ids that an operator looks for; `observed` makes events for the observer
that the application has given, and `traced` tells one that follows work when each step of it begins and ends. None of
them changes what happens: an observer that raises is logged once.
"""
