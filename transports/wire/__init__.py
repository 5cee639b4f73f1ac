"""transports/wire."""
