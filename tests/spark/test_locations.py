"""`walLocation`: what is not known to keep the segments is refused, with what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark")

import fsspec
from fsspec.implementations.memory import MemoryFileSystem

from redelivery.model.errors import ConfigError
from redelivery.spark.log.store.opening import open_store
from redelivery.spark.options.query import SourceOptions


def location(text: str) -> str:
    return SourceOptions.parse({"url": "stomp://h", "path": "q", "wallocation": text}).wal_location


@pytest.mark.parametrize(
    "text",
    [
        "/mnt/wal",
        "file:///mnt/wal",
        "file:/mnt/wal",
        "s3://bucket/wal",
        "s3a://bucket/wal",
        "gs://bucket/wal",
        "gcs://bucket/wal",
        "abfss://container@account.dfs.core.windows.net/wal",
    ],
)
def test_what_is_known_to_be_durable(text: str) -> None:
    assert location(f" {text} ") == text


def test_a_scheme_is_read_in_any_case() -> None:
    assert location("S3A://Bucket/wal") == "s3a://Bucket/wal"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dbfs:/x/wal", "write that, or better the s3://, abfss:// or gs:// URL"),
        ("dbfs:/x/wal", "'/dbfs/x/wal'"),
        ("DBFS:///x", "'/dbfs/x'"),
        ("memory://wal", "gone with it; known to be durable are s3://"),
        ("hdfs://namenode:8020/wal", "HDFS cannot hold the segments"),
        ("hdfs://namenode:8020/wal", "s3a:// (pip install s3fs)"),
        ("webhdfs://namenode:9870/wal", "HDFS cannot hold the segments"),
        ("wasbs://c@a.blob.core.windows.net/wal", "abfss://container@account"),
        ("s3n://bucket/wal", "write s3://"),
        ("s3:/bucket/wal", "write s3://bucket/wal"),
        ("s3:bucket/wal", "write s3://bucket/wal"),
        ("gs://", "write gs://bucket/folder"),
        ("file:wal", "write file:///wal, with the whole path"),
        ("ftp://host/wal", "ftp: is not known to be durable; known to be durable are s3://, s3a://"),
        ("github://x", "is not known to be durable"),
        ("nosuch://x", "is not known to be durable"),
        ("wal", "use an absolute path or a URL such as 's3://bucket/folder'"),
        ("./dbfs:/x", "use an absolute path"),
    ],
)
def test_anything_else_is_refused_in_one_line_with_what_to_write(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        location(text)
    assert str(refused.value).startswith(f"walLocation={text!r}: ")
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("text", ["dbfs:/x", "memory://x", "hdfs://x"])
def test_nothing_is_made_in_the_working_directory(text: str, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        with pytest.raises(ConfigError):
            open_store(text)
    assert not list(tmp_path.iterdir())


def test_a_file_system_may_declare_itself() -> None:
    class Kept(MemoryFileSystem):
        protocol = "kept"
        redelivery_durable = True

    fsspec.register_implementation("kept", Kept, clobber=True)
    assert location("kept://wal") == "kept://wal"
