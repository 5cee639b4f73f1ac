"""The version, which pyproject.toml reads from here, and how to get Proton where it is missing."""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.2.0"
_OF_PROTON: Final = frozenset({"proton", "cproton", "cproton_ffi"})
_WITHOUT_PROTON: Final = (
    "python-qpid-proton, which is not installed; from the clone: pip install '.[amqp]' compiles it (needs a C compiler"
    " and Python's headers, on Debian: apt install gcc python3-dev pkg-config); without a compiler: python3"
    " scripts/proton-wheels && pip install '.[amqp-binary]' --find-links dist/proton"
)


def lacks_proton(error: ModuleNotFoundError) -> str | None:
    """Return what is missing and what to do, to follow "… needs"; None: it is not Proton that is missing."""
    return _WITHOUT_PROTON if (error.name or "").partition(".")[0] in _OF_PROTON else None
