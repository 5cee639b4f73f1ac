"""A package that came by `--py-files` is answered with what to do instead."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark import SparkFiles

import redelivery
from redelivery.model.errors import ConfigError
from redelivery.spark.source import DefaultSource

READ = {"url": "stomp://h", "path": "q"}
STREAM = {**READ, "wallocation": "/nowhere/wal"}


def test_a_stream_of_py_files_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkFiles, "_root_directory", str(Path(redelivery.__file__).parents[1]))
    with pytest.raises(
        ConfigError, match=r"^redelivery came by --py-files .* install it .* spark.executorEnv.PYTHONPATH$"
    ):
        DefaultSource(STREAM).schema()
    assert DefaultSource(READ).schema()  # a browse runs in a task, which has those files


def test_an_installed_package_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(SparkFiles, "_root_directory", str(tmp_path))
    assert DefaultSource(STREAM).schema()
