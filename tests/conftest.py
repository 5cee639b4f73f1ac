from __future__ import annotations

from redelivery.testing.brokers import SPECS
from redelivery.testing.real import missing, required


def pytest_report_header() -> list[str]:
    """What is missing here, in one line for each broker, before the tests that it skips."""
    lines = []
    for name, spec in SPECS.items():
        reason = missing(name)
        if reason is None:
            lines.append(f"{spec.title}: found")
        else:
            then = "which fails its tests, because it is required" if required(name) else "so its tests are skipped"
            lines.append(f"{spec.title}: MISSING ({reason}), {then}")
    return lines
