"""The command line: it prints, the work is done in the rooms below.

`main` is the entry point and `app` has the commands. `demo` plays eight orders and reports what happens as `events`;
`view`, with `panels`, shows them on a terminal, `lines` prints them for a log or a program, `tally` checks that they
add up. `demo_spark` lets a stream read the dead letters, in a process whose program is `demo_spark_job`.
"""
