"""The worker of docs/tutorials/first-worker.md as a process: its log is the page's, Ctrl-C ends it with 0."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
import uuid
from pathlib import Path

import pytest
from tests.client.shell import eventually
from tests.examples.snippets import ROOT, sections

from redelivery.broker import EmbeddedBroker

PAGE = "docs/tutorials/first-worker.md"
TIMEOUT = 60.0


def shown_log() -> list[str]:
    """The lines of the page's log, as patterns; what a page leaves out is ``…``."""
    blocks = re.findall(r"^```text\n(.*?)^```", (ROOT / PAGE).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [".*".join(map(re.escape, line.split("…"))) for line in "".join(blocks).splitlines()]


def test_the_worker_logs_what_the_page_says_and_ends_with_0(tmp_path: Path) -> None:
    pytest.importorskip("typer")
    (block,) = (block for section in sections(PAGE) for block in section.blocks if block.needs == "worker")
    with EmbeddedBroker(f"tutorial-{uuid.uuid4().hex}", stomp_port=0) as broker:
        url = "stomp://localhost:61613"
        (tmp_path / "first_worker.py").write_text(block.code.replace(url, broker.stomp_url), encoding="utf-8")
        command = [sys.executable, "-m", "redelivery", "run", "first_worker:app"]
        with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603  # our own page
            watchdog = threading.Timer(TIMEOUT, process.kill)
            watchdog.start()
            for order in ("a chair", "the moon"):
                broker.send("orders", order)
            eventually(lambda: broker.queue_depth("parcels") == 1 and broker.queue_depth("orders.DLQ") == 1, TIMEOUT)
            process.send_signal(signal.SIGINT)
            log = process.communicate()[1].replace(broker.stomp_url, url)
            watchdog.cancel()
        assert process.returncode == 0, log
        assert [parcel.body for parcel in broker.messages("parcels")] == ["parcel with a chair"]
    assert [line for line in shown_log() if not re.search(line, log)] == [], log
