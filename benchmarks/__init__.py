"""Ratios to raw stomp.py and raw proton, and to the Java clients, in the same run: ``make bench``."""
