"""transports/stomp."""
