"""Views of dead letters that are looked at again and again, as a page of the console is.

`reading` reads a bounded part of a queue. `looks` remembers how long the queues were before; `timeline` says
when the letters of a group failed, and when one was tried, beside the times of its policy. `runs` does what
was decided there, and says how far it is.
"""
