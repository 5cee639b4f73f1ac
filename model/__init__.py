"""Immutable values and the errors; nothing here acts (floor 0)."""
