"""The parts of test_soak.py: what is sent and received in a driver, the faults, what is counted, and what may not grow.

`program` has the sender and the container of each driver, `faults` breaks their connections, `tally` counts messages
and says why one was handled twice, `memory` what the process uses.
"""
