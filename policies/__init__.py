"""Pure decisions about redelivery: immutable values without I/O, clock or sleeping (floor 1)."""
