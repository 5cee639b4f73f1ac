"""Connections, sessions, consumers and producers: the ledger decides, the shells wait (floor 3)."""
