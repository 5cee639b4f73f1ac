"""The states of groups of letters, as their operators say it: kept in files of this user, and not at the broker.

`resolved` keeps in which release a fingerprint has been repaired, and orders releases: a letter of this or a later
release is a regression. `seen` remembers the fingerprints that were shown, so that no other is named;
`shared_files` reads and writes what several commands use at the same time.
"""
