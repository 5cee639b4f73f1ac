"""The house: rooms that are top-level folders, a complete list of packages, a light import, small files."""

from __future__ import annotations

import importlib
import json
import os
import statistics
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.test_structure import LONGEST, ONE_STATE

import redelivery

ROOT = Path(__file__).parents[1]
PLATE = ROOT / "src" / "redelivery"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FOLDERS = PYPROJECT["tool"]["setuptools"]["package-dir"]
ROOMS = sorted(FOLDERS[name] for name in FOLDERS if name)
LINKS = (PLATE / "client").is_symlink()  # a zip archive has none

# The public contract of this version: a name more or less is a decision, to be made here too.
PUBLIC_NAMES = {
    *("connect", "ConnectionFactory", "Connection", "Session", "Consumer", "Producer", "QueueBrowser", "AckMode"),
    *("Publisher", "ReconnectPolicy", "App", "ListenerContainer", "Retry", "DeadLetter", "Drop"),
    *("Message", "Queue", "Topic", "TemporaryQueue", "TemporaryTopic", "Destination", "Byte", "Short", "Long", "Float"),
    *("RedeliveryPolicy", "RedeliveryPolicyMap", "AddressSettings", "AddressSettingsMap", "PrefetchPolicy"),
    *("Capabilities", "ConnectionMetaData", "DeadLetterInfo", "DeadLetterStrategy", "DeadLetterStrategyMap"),
    *("Passport", "Health"),
    *("BrokerDeadLetterStrategy", "SharedDeadLetterStrategy", "IndividualDeadLetterStrategy"),
    "DiscardingDeadLetterStrategy",
    *("JMSError", "IllegalStateError", "InvalidDestinationError", "InvalidSelectorError", "InvalidClientIDError"),
    *("MessageFormatError", "MessageNotWriteableError", "ResourceAllocationError", "SecurityError"),
    *("TransactionRolledBackError", "InDoubtError", "UnsupportedError", "ConfigError", "ConnectError"),
    *("ConnectionLostError", "ProtocolError", "RequestTimeoutError"),
}

OF_EXTRAS = {
    "cproton",
    "cproton_ffi",
    "fsspec",
    "jinja2",
    "opentelemetry",
    "proton",
    "pyarrow",
    "pyspark",
    "rich",
    "starlette",
    "typer",
    "uvicorn",
}


def python(code: str) -> str:
    """Standard output of ``code`` in an interpreter of its own."""
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=150)  # noqa: S603  # our own code
    return run.stdout


def sources() -> list[Path]:
    files = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, timeout=150)  # noqa: S607  # git of the PATH
    if files.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in files.stdout.split() if not (ROOT / name).is_symlink() and (ROOT / name).exists()]


def test_rooms_are_top_level_folders_by_the_name_of_their_package() -> None:
    assert {"": "src"} | {f"redelivery.{room}": room for room in ROOMS} == FOLDERS
    assert all((ROOT / room / "__init__.py").is_file() for room in ROOMS)


@pytest.mark.skipif(not LINKS, reason="a checkout without links, which only `make check` needs")
def test_rooms_are_relative_links_to_top_level_folders() -> None:
    links = {path.name: os.readlink(path) for path in PLATE.iterdir() if path.is_symlink()}
    assert links == {room: f"../../{room}" for room in ROOMS}


def test_every_folder_with_code_is_a_listed_package() -> None:
    folders = {
        ".".join(("redelivery", *path.parent.relative_to(ROOT).parts))
        for room in ROOMS
        for path in (ROOT / room).rglob("*.py")
    }
    assert set(PYPROJECT["tool"]["setuptools"]["packages"]) == {"redelivery", "pyspark_redelivery", *folders}


def test_every_listed_package_has_an_init_file() -> None:
    packages = PYPROJECT["tool"]["setuptools"]["packages"]
    for name in packages:
        room, _, inside = name.removeprefix("redelivery.").partition(".")
        folder = ROOT / room / inside.replace(".", "/") if room in ROOMS else ROOT / "src" / name
        assert (folder / "__init__.py").is_file(), name


def test_every_module_imports_and_no_room_goes_by_its_bare_name() -> None:
    files = [path.relative_to(ROOT).with_suffix("") for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    modules = sorted(".".join(("redelivery", *path.parts)).removesuffix(".__init__") for path in files)
    assert len(modules) > len(ROOMS)
    code = f"""
import importlib, json, sys
for name in {modules!r}:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name.partition(".")[0] not in {OF_EXTRAS!r}:
            raise
print(json.dumps(sorted(set({ROOMS!r}) & set(sys.modules))))
"""
    assert json.loads(python(code)) == []


def test_import_is_light() -> None:
    heavy = ["stomp", "lark", "defusedxml", "typer", "rich", "pytest", "asyncio", "redelivery.broker"]
    code = f"import json, sys, redelivery; print(json.dumps(sorted(set({heavy!r}) & set(sys.modules))))"
    assert json.loads(python(code)) == []


def test_pytest_plugin_imports_nothing_heavy_before_a_fixture_is_used() -> None:
    code = """
import json, pytest
before = set(__import__("sys").modules)
import redelivery.testing.plugin, redelivery.testing.fixtures
import sys
print(json.dumps(sorted({name.partition(".")[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names))))
"""
    assert json.loads(python(code)) == ["redelivery"]


def test_exported_names_are_the_public_contract() -> None:
    assert set(redelivery.__all__) == PUBLIC_NAMES
    assert [name for name in redelivery.__all__ if not hasattr(redelivery, name)] == []


def test_base_dependencies_are_few() -> None:
    names = [requirement.partition(">")[0] for requirement in PYPROJECT["project"]["dependencies"]]
    assert names == ["defusedxml", "lark", "stomp.py", "tenacity"]


def test_entry_points_of_the_transports_resolve() -> None:
    for target in PYPROJECT["project"]["entry-points"]["redelivery.transports"].values():
        module, _, name = target.partition(":")
        if ".amqp." in module and find_spec("proton") is None:
            continue  # of the extra
        assert hasattr(importlib.import_module(module), name), target


def test_no_file_is_long_and_most_are_short() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in sources()}
    assert {
        str(path.relative_to(ROOT)): n
        for path, n in lengths.items()
        if n > ONE_STATE.get(str(path.relative_to(ROOT)), LONGEST)
    } == {}
    in_rooms = [n for path, n in lengths.items() if path.relative_to(ROOT).parts[0] in ROOMS and n]
    assert statistics.median(in_rooms) <= 120
