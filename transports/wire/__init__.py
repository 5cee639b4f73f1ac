"""What every protocol needs of the system: sockets, threads, a clock. It knows bytes, no frames (floor 2)."""
