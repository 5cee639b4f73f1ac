"""broker/engine."""
