"""The store behind fsspec: in memory, on an S3 emulator where one is installed, and file systems that are refused."""

from __future__ import annotations

import importlib.util
import os
import pickle
import threading
import uuid
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("fsspec")

import fsspec
from fsspec.asyn import AsyncFileSystem
from fsspec.implementations.memory import MemoryFileSystem
from tests.spark.wal_world import data, ids_of, in_doubt_ids

from redelivery import ConfigError
from redelivery.spark.log.store.fsspec_store import FsspecStore, _creates
from redelivery.spark.log.store.interface import SegmentStore, StoreError, Tombstone, check_create_if_absent
from redelivery.spark.log.store.opening import open_store
from redelivery.spark.log.wal import Wal

_S3 = [name for name in ("s3fs", "moto", "flask") if importlib.util.find_spec(name) is None]
Place = tuple[str, dict[str, Any]]

pytestmark = pytest.mark.together("S3")  # one emulator


_OBJECT_STORES = [
    pytest.param(scheme, marks=pytest.mark.skipif(bool(_S3), reason=f"not installed: {', '.join(_S3)}"))
    for scheme in ("s3", "s3a")
]


@pytest.fixture(params=["memory", *_OBJECT_STORES])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Place:
    if request.param == "memory":
        monkeypatch.setattr(MemoryFileSystem, "redelivery_durable", True, raising=False)  # for as long as the test
        return f"memory://{uuid.uuid4().hex}", {}
    return f"{request.param}://wal/{uuid.uuid4().hex}", request.getfixturevalue("s3")


@pytest.fixture
def store(place: Place) -> SegmentStore:
    return open_store(*place)


def test_the_first_wins(store: SegmentStore) -> None:
    check_create_if_absent(store)
    assert store.put_if_absent("seg/1", b"first")
    assert not store.put_if_absent("seg/1", b"second")
    assert store.get("seg/1") == b"first"


@pytest.mark.parametrize("place", _OBJECT_STORES, indirect=True)  # fsspec's memory looks first, and writes then
def test_of_eight_writers_one_wins(place: Place) -> None:
    for race in range(3):
        name, start, won = f"seg/{race}", threading.Barrier(8), list[int]()

        def write(number: int, name: str = name, start: threading.Barrier = start, won: list[int] = won) -> None:
            store = open_store(*place)
            start.wait(20)
            if store.put_if_absent(name, b"%d" % number * 1000):
                won.append(number)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert len(won) == 1
        assert open_store(*place).get(name) == b"%d" % won[0] * 1000


def test_what_is_not_there(store: SegmentStore) -> None:
    assert store.get("seg/1") is None
    assert store.open_arrow("seg/1") is None
    assert not store.exists("seg/1")
    assert store.list("seg") == []
    store.delete("seg/1")


def test_another_ones_changes_are_seen_at_once(place: Place) -> None:
    one, two = open_store(*place), open_store(*place)
    assert one.list("seg") == []
    for name in ("b", "a"):
        two.put_if_absent(f"seg/{name}", b"x")
    two.put_if_absent("seg/deeper/c", b"x")
    assert one.list("seg") == ["a", "b"]
    assert one.exists("seg/a")
    two.delete("seg/a")
    assert one.list("seg") == ["b"]
    assert not one.exists("seg/a")


def test_arrow_files_and_tombstones(store: SegmentStore) -> None:
    store.put_if_absent("seg/1", data("a", "m1", "m2"))
    assert store.open_arrow("seg/1").read_all().column(0).to_pylist() == ["m1", "m2"]
    store.put_if_absent("seg/2", b"")
    with pytest.raises(Tombstone, match=f"{store.location}/seg/2 is a tombstone"):
        store.open_arrow("seg/2")
    store.put_if_absent("seg/3", b"no arrow file")
    with pytest.raises(StoreError, match=f"{store.location}/seg/3 is not an Arrow file"):
        store.open_arrow("seg/3")


def test_a_log(store: SegmentStore) -> None:
    wal = Wal.open(store)
    for seq in (1, 2, 3):
        assert wal.publish(seq, 0, data(f"a{seq}", f"m{seq}"))
        wal.check_published(seq, 0, f"a{seq}")
        wal.commit(seq, 2, retain=1, epoch=wal._epochs.take("x"))
    again = Wal.attach(pickle.loads(pickle.dumps(store)), wal.identity)  # noqa: S301 - our own
    assert again.watermark() == 3
    assert ids_of(again, 3) == ["m3"]
    assert ids_of(again, 2) is None
    assert in_doubt_ids(again) == {"m1", "m2", "m3"}


@pytest.mark.skipif(bool(_S3), reason=f"not installed: {', '.join(_S3)}")
class TestS3:
    def test_a_segment_that_is_sent_in_parts(self, s3: dict[str, Any]) -> None:
        store = open_store(f"s3://wal/{uuid.uuid4().hex}", s3)
        content = os.urandom(101 << 20)  # from 100 MiB on
        assert store.put_if_absent("seg/1", content)
        assert not store.put_if_absent("seg/1", content[::-1])
        assert store.get("seg/1") == content

    def test_a_bucket_that_is_not_there(self, s3: dict[str, Any]) -> None:
        store = open_store("s3://nobodys/wal", s3)
        with pytest.raises(StoreError, match=r"s3://nobodys/wal/seg/1: .*bucket does not exist"):
            store.put_if_absent("seg/1", b"x")

    def test_a_server_that_is_not_there(self, s3: dict[str, Any]) -> None:
        options = {**s3, "endpoint_url": "http://127.0.0.1:9", "config_kwargs": {"retries": {"max_attempts": 1}}}
        store = FsspecStore("s3://wal/x", options)
        store._fs.retries = 1  # its own, with sleeps in between
        for act in (lambda: store.put_if_absent("seg/1", b"x"), lambda: store.get("seg/1"), lambda: store.list("seg")):
            with pytest.raises(StoreError, match=r"s3://wal/x/seg.*127.0.0.1:9"):
                act()


class Failing(MemoryFileSystem):
    """Raises `errors`, one a call."""

    protocol = "failing"
    cachable = False
    errors: ClassVar[list[Exception]] = []

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **options: Any) -> None:
        if self.errors:
            raise self.errors.pop()
        super().pipe_file(path, value, mode, **options)


@pytest.fixture
def failing() -> Iterator[FsspecStore]:
    fsspec.register_implementation("failing", Failing, clobber=True)
    yield FsspecStore(f"failing://{uuid.uuid4().hex}")
    Failing.errors = []


def answer(status: int) -> OSError:
    """As s3fs passes on what botocore raises."""
    cause = Exception("a botocore ClientError")
    cause.response = {"ResponseMetadata": {"HTTPStatusCode": status}}  # type: ignore[attr-defined]  # as botocore does
    error = OSError(f"the server's answer is {status}")
    error.__cause__ = cause
    return error


def test_what_a_file_system_raises_is_a_store_error(failing: FsspecStore) -> None:
    Failing.errors = [RuntimeError("of a client library that has its own")]
    with pytest.raises(StoreError, match=rf"{failing.location}/seg/1: RuntimeError: of a client library") as caught:
        failing.put_if_absent("seg/1", b"x")
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_a_condition_that_the_server_does_not_name(failing: FsspecStore) -> None:
    Failing.errors = [answer(412)]
    assert not failing.put_if_absent("seg/1", b"x")


def test_a_conflict_is_tried_again_but_not_for_ever(failing: FsspecStore) -> None:
    Failing.errors = [answer(409), answer(409)]
    assert failing.put_if_absent("seg/1", b"x")
    Failing.errors = [answer(409) for _ in range(100)]
    with pytest.raises(StoreError, match=r"seg/2: 5 times in conflict"):
        failing.put_if_absent("seg/2", b"x")
    Failing.errors = [answer(503)]
    with pytest.raises(StoreError, match=r"seg/2: OSError: the server's answer is 503"):
        failing.put_if_absent("seg/2", b"x")


class TestRefused:
    def test_one_that_looks_before_it_writes(self, tmp_path: Any) -> None:
        """fsspec's local file system, say: two writers can both see nothing and both write."""
        with pytest.raises(ConfigError, match="LocalFileSystem cannot create a file only if it is absent"):
            FsspecStore(f"file://{tmp_path}")

    def test_one_that_is_not_known(self) -> None:
        with pytest.raises(ConfigError, match=r"walLocation='nosuch://x': nosuch: is not known to be durable"):
            open_store("nosuch://x")

    @pytest.mark.parametrize(
        ("url", "package"), [("gs://b/x", "gcsfs"), ("abfss://c@a.dfs.core.windows.net/x", "adlfs")]
    )
    def test_one_that_is_not_installed(self, url: str, package: str) -> None:
        if importlib.util.find_spec(package) is not None:
            pytest.skip(f"{package} is installed")
        with pytest.raises(ConfigError, match=rf"walLocation '{url}' needs {package} .*: pip install {package}$"):
            open_store(url)

    @pytest.mark.skipif(bool(_S3), reason=f"not installed: {', '.join(_S3)}")
    def test_storage_options_that_do_not_fit(self) -> None:
        with pytest.raises(ConfigError, match=r"walLocation 's3://b/x' with these storageOptions"):
            open_store("s3://b/x", {"use_listings_cache": True})


def test_azure_names_the_mode_among_its_other_keywords() -> None:
    """adlfs sends a conditional PUT for ``mode="create"``, which its signature does not show."""

    class Azure(AsyncFileSystem):
        async def _pipe_file(self, path: str, value: bytes, overwrite: bool = True, **more: Any) -> None: ...

    assert not _creates(Azure())
    Azure.__module__ = "adlfs.spec"
    assert _creates(Azure())
