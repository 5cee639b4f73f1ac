"""The passport of a dead letter: what the client that dead-lettered it knew, as one property on it.

`passport` is the value, and how it is written and read; `failures` makes one of the exception that an application has
raised: its class, text and stack, and the fingerprint by which failures of one place are known; `redaction` takes
what is recognized as a secret out of a string.
"""

from redelivery.model.passport.passport import FailedAttempt, Passport, passport_record, read_passport, write_passport

__all__ = ["FailedAttempt", "Passport", "passport_record", "read_passport", "write_passport"]
