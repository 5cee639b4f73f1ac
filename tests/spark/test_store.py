"""The store in a folder: exclusive, durable, whole, and honest about disks that fail."""

from __future__ import annotations

import errno
import os
import pickle
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

from redelivery import ConfigError
from redelivery.spark.log.store.interface import PROBES, Data, StoreError, Tombstone, check_create_if_absent
from redelivery.spark.log.store.local_store import LocalStore
from redelivery.spark.log.store.opening import open_store


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    found = LocalStore(str(tmp_path / "wal"))
    found.make_folders(("seg", PROBES))
    return found


def files(store: LocalStore) -> list[str]:
    root = Path(store.location)
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def test_the_first_wins(store: LocalStore) -> None:
    assert store.put_if_absent("seg/1", b"first")
    assert not store.put_if_absent("seg/1", b"second")
    assert store.get("seg/1") == b"first"
    assert files(store) == ["seg/1"]


def test_of_eight_writers_one_wins(store: LocalStore) -> None:
    for race in range(20):
        name, start, won = f"seg/{race}", threading.Barrier(8), list[int]()

        def write(number: int, name: str = name, start: threading.Barrier = start, won: list[int] = won) -> None:
            start.wait(10)
            if LocalStore(store.location).put_if_absent(name, b"%d" % number * 1000):
                won.append(number)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert len(won) == 1
        assert store.get(name) == b"%d" % won[0] * 1000
    assert len(files(store)) == 20


def test_what_is_not_there(store: LocalStore) -> None:
    assert store.get("seg/1") is None
    assert store.open_arrow("seg/1") is None
    assert not store.exists("seg/1")
    assert store.list("seg") == []
    store.delete("seg/1")


def test_list_is_sorted_and_hides_temporaries(store: LocalStore) -> None:
    for name in ("b", "a", "c"):
        store.put_if_absent(f"seg/{name}", b"")
    Path(store.location, "seg", ".tmp-0").touch()
    assert store.list("seg") == ["a", "b", "c"]
    store.delete("seg/b")
    assert store.list("seg") == ["a", "c"]
    assert not store.exists("seg/b")


def segment(*ids: str) -> Any:
    sink = pa.BufferOutputStream()
    batch = pa.record_batch({"message_id": list(ids)})
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def test_an_arrow_file_can_be_read_on_after_it_was_deleted(store: LocalStore) -> None:
    store.put_if_absent("seg/1", segment("a", "b"))
    reader = store.open_arrow("seg/1")
    store.delete("seg/1")
    assert reader.get_batch(0).column(0).to_pylist() == ["a", "b"]


def test_an_empty_file_is_a_tombstone(store: LocalStore) -> None:
    store.put_if_absent("seg/1", b"")
    with pytest.raises(Tombstone, match=r"seg/1 is a tombstone"):
        store.open_arrow("seg/1")


@pytest.mark.parametrize("content", [b"x", b"no arrow file" * 100, bytes(segment("a"))[:-20]])
def test_what_is_no_arrow_file_is_named(store: LocalStore, content: bytes) -> None:
    store.put_if_absent("seg/1", content)
    with pytest.raises(StoreError, match=rf"{store.location}/seg/1 is not an Arrow file"):
        store.open_arrow("seg/1")


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="asks /proc which file a descriptor is of")
class TestDurable:
    """The order of system calls is what a power failure sees."""

    def test_content_then_name_then_folder(self, store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
        seen: list[str] = []
        fsync, link = os.fsync, os.link

        def watched_fsync(descriptor: int) -> None:
            seen.append("sync " + Path(os.readlink(f"/proc/self/fd/{descriptor}")).name[:5])
            fsync(descriptor)

        def watched_link(source: Path, target: Path) -> None:
            seen.append(f"link {target.name}")
            link(source, target)

        monkeypatch.setattr(os, "fsync", watched_fsync)
        monkeypatch.setattr(os, "link", watched_link)
        store.make_folders(["doubt"])
        store.put_if_absent("seg/1", b"data")
        assert seen == ["sync wal", "sync .tmp-", "link 1", "sync seg"]


@pytest.mark.parametrize("name", ["x", "seg/x"])
def test_a_folder_that_was_deleted_is_not_made_again(store: LocalStore, name: str) -> None:
    shutil.rmtree(store.location)
    with pytest.raises(StoreError, match="is not there any more: walLocation was deleted"):
        store.put_if_absent(name, b"1")
    assert not Path(store.location).exists()


def failing(number: int) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise OSError(number, os.strerror(number))

    return fail


class TestDisksThatFail:
    @pytest.mark.parametrize(("step", "number"), [("fsync", errno.ENOSPC), ("fsync", errno.EIO), ("open", errno.EROFS)])
    def test_nothing_is_left_and_the_path_is_named(
        self, store: LocalStore, monkeypatch: pytest.MonkeyPatch, step: str, number: int
    ) -> None:
        store.put_if_absent("seg/other", b"")
        with monkeypatch.context() as patch:
            patch.setattr(os if step == "fsync" else Path, step, failing(number))
            with pytest.raises(StoreError, match=f"{store.location}/seg/1: {os.strerror(number)}"):
                store.put_if_absent("seg/1", b"data")
        assert files(store) == ["seg/other"]

    def test_a_full_disk_in_the_middle(self, store: LocalStore) -> None:
        resource = pytest.importorskip("resource")
        signal = pytest.importorskip("signal")
        ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
        try:
            with pytest.raises(StoreError, match=r"seg/1: File too large"):
                store.put_if_absent("seg/1", bytes(100_000))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            signal.signal(signal.SIGXFSZ, ignored)
        assert files(store) == []
        assert store.put_if_absent("seg/1", bytes(100_000))

    def test_a_file_system_without_links(self, store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "link", failing(errno.EPERM))
        with pytest.raises(StoreError, match=r"seg/1: this file system has no hard links .*: move walLocation"):
            store.put_if_absent("seg/1", b"data")
        assert files(store) == []

    def test_the_answer_to_our_own_link_was_lost(self, store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
        link = os.link

        def twice(source: Path, target: Path) -> None:
            link(source, target)
            link(source, target)

        monkeypatch.setattr(os, "link", twice)
        assert store.put_if_absent("seg/1", b"data")
        assert not store.put_if_absent("seg/1", b"data")

    @pytest.mark.parametrize("act", [LocalStore.get, LocalStore.open_arrow, LocalStore.delete])
    def test_reading_names_the_path_too(self, store: LocalStore, act: Callable[[LocalStore, str], object]) -> None:
        with pytest.raises(StoreError, match=f"{store.location}/seg"):
            act(store, "seg")

    def test_a_file_where_the_folder_should_be(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(StoreError, match=r"file/wal/seg: Not a directory"):
            open_store(str(tmp_path / "file" / "wal")).make_folders(["seg"])

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
    def test_a_folder_that_may_not_be_written(self, store: LocalStore) -> None:
        Path(store.location).chmod(0o500)
        with pytest.raises(StoreError, match="Permission denied"):
            check_create_if_absent(store)


def test_clean_removes_what_dead_writers_left(store: LocalStore) -> None:
    store.put_if_absent("seg/1", b"")
    old, new = Path(store.location, "seg", ".tmp-old"), Path(store.location, ".tmp-new")
    for path in (old, new):
        path.touch()
    os.utime(old, (0, 0))
    os.utime(Path(store.location, "seg", "1"), (0, 0))
    store.clean(3600)
    assert files(store) == [".tmp-new", "seg/1"]


class TestLocation:
    @pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}", "file://localhost{}", "local://{}"])
    def test_a_path_or_a_file_url(self, tmp_path: Path, form: str) -> None:
        store = open_store(form.format(tmp_path / "wal"))
        store.make_folders(["seg"])
        assert (type(store), store.location) == (LocalStore, str(tmp_path / "wal"))
        assert (tmp_path / "wal").is_dir()

    def test_a_url_is_unquoted(self, tmp_path: Path) -> None:
        assert open_store(f"file://{tmp_path}/two%20words").location == f"{tmp_path}/two words"

    def test_relative_paths_are_resolved_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        store = open_store("wal")
        monkeypatch.chdir("/")
        store.make_folders(["seg"])
        assert store.put_if_absent("x", b"")
        assert (tmp_path / "wal" / "x").exists()

    def test_another_host(self) -> None:
        with pytest.raises(ConfigError, match=r"'file://data/wal' names the host 'data'.*write file:///data/wal"):
            open_store("file://data/wal")

    def test_storage_options_for_a_path(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="storageOptions are for URLs"):
            open_store(str(tmp_path), {"key": "x"})

    def test_pickled(self, store: LocalStore) -> None:
        pickle.loads(pickle.dumps(store)).put_if_absent("x", b"1")  # noqa: S301 - our own
        assert store.get("x") == b"1"


class Overwriting(LocalStore):
    def put_if_absent(self, name: str, data: Data) -> bool:
        path = Path(self.location, name)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        return True


class TestTheProbe:
    def test_passes_and_leaves_nothing(self, store: LocalStore) -> None:
        check_create_if_absent(store)
        assert files(store) == []

    def test_a_store_that_overwrites(self, tmp_path: Path) -> None:
        with pytest.raises(StoreError, match="let a second writer replace"):
            check_create_if_absent(Overwriting(str(tmp_path)))

    def test_a_store_that_says_no_and_overwrites(self, tmp_path: Path) -> None:
        class SaysNo(Overwriting):
            def put_if_absent(self, name: str, data: Data) -> bool:
                absent = not self.exists(name)
                super().put_if_absent(name, data)
                return absent

        with pytest.raises(StoreError, match="let a second writer replace"):
            check_create_if_absent(SaysNo(str(tmp_path)))


WRITER = """
import itertools, sys
from redelivery.spark.log.store.local_store import LocalStore

store = LocalStore(sys.argv[1])
for number in itertools.count():
    store.put_if_absent(f"seg/{number}", b"%d" % (number % 10) * 300_000)
    print(number, flush=True)
"""


def test_a_writer_that_is_killed_leaves_whole_files(store: LocalStore) -> None:
    for wanted in (1, 7, 20):
        command = [sys.executable, "-c", WRITER, store.location]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:  # noqa: S603 - our own
            assert process.stdout is not None
            said = [int(process.stdout.readline()) for _ in range(wanted)]
            process.kill()
        names = store.list("seg")
        assert {str(number) for number in said} <= set(names)
        for name in names:
            assert store.get(f"seg/{name}") == b"%d" % (int(name) % 10) * 300_000
