"""A Spark that has no data sources in Python is answered with its version and what to do."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from importlib.machinery import ModuleSpec

import pyspark
import pytest

from redelivery.model.errors import ConfigError


@pytest.mark.parametrize("module", ["redelivery.spark.source", "pyspark_redelivery"])
def test_spark_3_is_named_with_its_version(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    found = importlib.util.find_spec

    def older(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name.startswith("pyspark.sql.") and "datasource" in name else found(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", older)
    monkeypatch.setattr(pyspark, "__version__", "3.5.9")
    for name in ("redelivery.spark.versions", "redelivery.spark.source", "pyspark_redelivery"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(ConfigError, match=r"^the data source jms needs Spark 4.0 or newer, and this is PySpark 3.5.9"):
        importlib.import_module(module)
