"""The command line: it prints, the work is done in the rooms below (floor 4)."""
