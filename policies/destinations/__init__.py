"""What is set for which destinations: by exact name, or by pattern.

`patterns` says which names a pattern covers, and which of two patterns is the more specific one. `map` holds a value
for each pattern and finds the one that counts for a destination. `explain` says why it does.
"""
