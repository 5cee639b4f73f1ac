"""transports/dialects."""
