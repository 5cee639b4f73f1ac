"""Spark Connect, and executors in JVMs of their own: the whole way of a message, in a Spark of the test's own."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.run import again
from tests.spark.elsewhere import MESSAGES

from redelivery.broker import EmbeddedBroker

ROOT = Path(__file__).parents[2]
_SECONDS = 280
_TRIES = 3
_LACKS = [name for name in ("grpc", "grpc_status", "pandas") if importlib.util.find_spec(name) is None]
_CI = os.environ.get("CI", "").lower() in {"1", "true"}

pytestmark = [
    pytest.mark.long_form,
    pytest.mark.timeout(_SECONDS * _TRIES, func_only=True),
    pytest.mark.together("Spark elsewhere"),
]


def _run(where: str, url: str, folder: Path, receiver: str) -> tuple[dict[str, object], str]:
    """What it says, and the queue that it used. Another one is run where Spark was too slow."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for number in again.spark_tries(_TRIES):
        queue = f"orders{number}"
        (folder / queue).mkdir()
        done = subprocess.run(  # noqa: S603  # our own
            [sys.executable, "-m", "tests.spark.elsewhere", where, url, str(folder / queue), receiver, queue],
            capture_output=True,
            text=True,
            timeout=_SECONDS - 10,
            env=environment,
            check=False,
        )
        if again.TOO_SLOW not in done.stderr:
            break
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found, queue


@pytest.mark.parametrize("receiver", ["driver", "executor"])
@pytest.mark.parametrize("where", ["connect", "cluster"])
def test_each_message_is_a_row_once_and_the_query_goes_on(
    where: str, receiver: str, broker: EmbeddedBroker, tmp_path: Path
) -> None:
    if where == "connect" and _LACKS:
        assert not _CI, f"not installed: {', '.join(_LACKS)}; the extra `connect-test` has them"
        pytest.skip(f"not installed: {', '.join(_LACKS)} (the extra connect-test)")
    found, queue = _run(where, broker.stomp_url, tmp_path, receiver)
    classic = "pyspark.sql.session" if where == "cluster" else "pyspark.sql.connect.session"
    assert found == {
        "session": classic,
        "browsed": MESSAGES,
        "rows": 2 * MESSAGES,
        "different": 2 * MESSAGES,
        "kinds": ["test"],
        "segments": True,
    }
    assert broker.queue_depth(queue) == 0
    assert broker.queue_depth(f"{queue}.copies") == 2 * MESSAGES
