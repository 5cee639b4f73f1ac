"""Transports are found by entry points, and the built-in ones without: in a zip, in a frozen application."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from redelivery.model.errors import ConfigError
from redelivery.transports import registry

ROOT = Path(__file__).parents[2]
_PROGRAM = """
import json, sys
sys.path[:] = [*{first!r}, *(each for each in sys.path if "site-packages" not in each)]
import redelivery
from importlib.metadata import entry_points
assert not entry_points(group="redelivery.transports"), "this interpreter has metadata"
from redelivery.broker import EmbeddedBroker
bodies = []
with EmbeddedBroker("zipped", stomp_port=0) as broker:
    for url in (broker.vm_url, broker.stomp_url):
        with redelivery.connect(url) as connection, connection.session() as session:
            session.producer("orders").send(url)
            message = session.consumer("orders").receive(timeout=10)
            bodies.append(message.body == url)
try:
    redelivery.connect("nosuch://h")
except redelivery.ConfigError as error:
    bodies.append(str(error))
print(json.dumps([redelivery.__file__, *bodies]))
"""


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """The package without metadata, as `spark-submit --py-files` would be given it."""
    path = tmp_path / "redelivery.zip"
    with zipfile.ZipFile(path, "w") as zipped:
        top = ROOT / "src" / "redelivery"
        zipped.write(top / "__init__.py", "redelivery/__init__.py")
        for room in ("model", "policies", "transports", "client", "broker"):
            for source in sorted((ROOT / room).rglob("*.py")):
                zipped.write(source, f"redelivery/{source.relative_to(ROOT)}")
    return path


@pytest.fixture
def libraries(tmp_path: Path) -> Path:
    """What redelivery needs, and no metadata of redelivery."""
    folder = tmp_path / "libraries"
    folder.mkdir()
    import stomp

    installed = Path(stomp.__file__).parents[1]
    for name in ("stomp", "websocket", "docopt"):
        for found in installed.glob(f"{name}*"):
            if not found.name.endswith(".dist-info"):
                (folder / found.name).symlink_to(found)
    return folder


@pytest.mark.short_form
def test_a_zip_without_metadata_has_the_built_in_transports(archive: Path, libraries: Path) -> None:
    program = _PROGRAM.format(first=[str(archive), str(libraries)])
    command = [sys.executable, "-I", "-S", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)  # noqa: S603  # ours
    assert done.returncode == 0, done.stderr
    file, over_vm, over_stomp, said = json.loads(done.stdout)
    assert file.startswith(str(archive))
    assert over_vm
    assert over_stomp
    assert "known are amqp://, amqps://, stomp://, stomp+ssl://, vm://" in said


def test_the_built_in_ones_are_the_entry_points() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert dict(registry.BUILT_IN) == project["entry-points"]["redelivery.transports"]


def test_an_entry_point_comes_before_what_is_built_in(monkeypatch: pytest.MonkeyPatch) -> None:
    class Found:
        def load(self) -> type:
            return Found

    monkeypatch.setattr(registry, "entry_points", lambda **_: [Found()])
    theirs: object = registry.transport_class.__wrapped__("stomp")
    assert theirs is Found


def test_a_scheme_that_nobody_offers_is_an_error_that_names_those_that_are() -> None:
    with pytest.raises(ConfigError, match=r"nosuch:// is not known; known are amqp://, amqps://, "):
        registry.transport_class("nosuch")
