"""The system as every protocol needs it: sockets, threads, a clock. It knows bytes, no frames (floor 2).

`sockets` connects, `tls` encrypts, `outbox` writes whole frames in order. `threads` says which thread reads, which
waits, and who does what nobody is there to do. `signatures` and `peek` find out what a wrong port speaks; `clock` is
the only place that asks for the time.
"""
