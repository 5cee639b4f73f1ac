"""Where a broker comes from, on machines of several kinds: played by folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from redelivery.testing.brokers.ports import NotStartedError
from redelivery.testing.brokers.sources import SystemPackage


def machine(place: Path, version: str | None) -> Path:
    """With a RabbitMQ of that version, or none."""
    if version is not None:
        (place / "lib" / f"rabbitmq_server-{version}").mkdir(parents=True)
        program = place / "bin" / "rabbitmq-server"
        program.parent.mkdir()
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    return place


def package(place: Path, version: str) -> SystemPackage:
    programs, folders = (str(place / "bin" / "rabbitmq-server"),), str(place / "lib" / "rabbitmq_server-")
    return SystemPackage(programs, "rabbitmq-server", version=version, folders=folders)


@pytest.mark.parametrize(
    ("installed", "wanted", "missing"),
    [
        ("3.10.8", "3.", None),
        ("4.0.5", "4.0.", None),
        ("4.0.5", "3.", "the package rabbitmq-server is here in another version than 3."),
        ("3.10.8", "4.0.", "the package rabbitmq-server is here in another version than 4.0."),
        ("4.0.5", "4.3.", "the package rabbitmq-server is here in another version than 4.3."),
        (None, "3.", "rabbitmq-server not found (package rabbitmq-server)"),
    ],
)
def test_a_package_of_the_system_is_used_where_its_version_is_wanted(
    tmp_path: Path, installed: str | None, wanted: str, missing: str | None
) -> None:
    source = package(machine(tmp_path, installed), wanted)
    assert source.missing() == missing
    assert source.missing(to_run=False) is None  # the image has it
    if missing is None:
        assert source.fetch() == tmp_path / "bin"
    else:
        with pytest.raises(NotStartedError, match="rabbitmq-server"):
            source.fetch()
