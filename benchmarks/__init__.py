"""Ratios to raw stomp.py, and to the Java client, in the same run: ``make bench``."""
