"""A program that is killed: the job of `examples/spark_delta.py` or `examples/spark_iceberg.py`.

``python -m tests.spark.versions.lakes FORMAT URL FOLDER MOMENT BATCH``; kills its session (kill -9, the JVM too) in the
batch, ``before`` the example writes it to the table or ``after``, which is between the table's commit and Spark's, or
after so many seconds of ``during`` it. ``never``: goes on until all is read; its last line is JSON.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
from typing import Any

from tests.spark.faults.orders import kill_session
from tests.spark.versions.artifacts import ROOT


def main(table_format: str, url: str, folder: str, moment: str, at: str) -> None:
    import pyspark

    sys.path.insert(0, str(ROOT / "examples"))
    example: Any = importlib.import_module(f"spark_{table_format}")
    place = () if table_format == "delta" else (folder,)
    spark = example.session(*place)

    def write(rows: Any, batch: int, *rest: Any) -> None:
        if moment == "before" and batch == int(at):
            kill_session(os.getsid(0))
        if moment == "during" and batch > 0:
            threading.Timer(float(at), kill_session, [os.getsid(0)]).start()
        example.append(rows, batch, *rest)
        if moment == "after" and batch == int(at):
            kill_session(os.getsid(0))

    for _ in range(10):  # Spark 4.0 and 4.1 end after one batch
        if not example.job(spark, url, folder, write) and moment == "never":
            break
    table = example.table(spark, folder) if table_format == "delta" else example.table(spark)
    rows = [row.order for row in table.select("order").collect()]
    print(json.dumps({"spark": pyspark.__version__, "rows": len(rows), "distinct": len(set(rows))}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
