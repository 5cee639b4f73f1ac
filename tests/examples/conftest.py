from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.examples import with_spark
from tests.run import forms
from tests.spark.conftest import spark

__all__ = ["spark"]  # the one of all tests


@pytest.fixture
def output(
    spark: Any,  # noqa: ARG001 - the fixture
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., list[str]]:
    """What a program with Spark prints: in the short form on the Spark that is there, which it does not stop."""

    def here(program: Path, *arguments: str) -> list[str]:
        from pyspark.sql import SparkSession

        with monkeypatch.context() as patched:
            patched.setattr(SparkSession, "stop", lambda _: None)
            patched.setattr(sys, "argv", [str(program), *arguments])
            runpy.run_path(str(program), run_name="__main__")
        return capsys.readouterr().out.splitlines()

    with_spark.needs_spark()
    return here if forms.brief() else with_spark.output
