"""The command line: it prints, the work is done in the rooms below.

`main` is the entry point and `app` has the commands. `demo/` is the demonstration, `broker` an embedded broker as a
process of its own, `run` runs the listeners of an application, `policy` prints what a broker's file
means, and `doctor` what is wrong with a broker.
"""
