"""Bodies as the application's own types: what ``body_type=`` of a consumer or a listener container means.

`converter` finds once what a type needs, and calls it for each message; `structure` builds dataclasses and other types
that annotations say everything about; `libraries` has pydantic's models and msgspec's structs validated by these, and
imports neither: their types bring them. `variable` is the T of ``Message[T]`` and ``Consumer[T]``.
"""
