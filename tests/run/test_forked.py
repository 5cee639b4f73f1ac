"""A process that is forked from one that has imported everything is as one of `subprocess`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.run.forked import Forked

PIPE = subprocess.PIPE
PIPES: Any = {"stdin": PIPE, "stdout": PIPE, "stderr": PIPE, "text": True}
LOOK = """
import json, os, signal, sys
sid = os.getsid(0) == os.getpid()
files = [name for name in os.listdir("/dev/fd") if os.path.exists(f"/dev/fd/{name}")]
handlers = [str(signal.getsignal(each)) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)]
print(json.dumps([sys.argv, sys.path, os.getcwd(), dict(os.environ), sid, files, handlers, sys.warnoptions]))
print(sys.stdin.read(), file=sys.stderr)
sys.exit(3)
"""


@pytest.mark.parametrize("own_session", [False, True])
def test_it_has_and_says_the_same(tmp_path: Path, own_session: bool) -> None:
    command = (sys.executable, "-W", "error", "-c", LOOK, "one", "two words")
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "LC_CTYPE": "C.UTF-8"}
    said = []
    for kind in (subprocess.Popen[str], Forked[str]):
        with kind(command, cwd=tmp_path, env=environment, start_new_session=own_session, **PIPES) as process:
            output, errors = process.communicate("read", timeout=60)
            said.append((json.loads(output), errors, process.returncode))
    assert said[0] == said[1]


def test_a_signal_ends_it_and_is_its_code() -> None:
    for number in (signal.SIGKILL, signal.SIGTERM):
        with Forked[bytes](
            (sys.executable, "-c", "import time; print(1, flush=True); time.sleep(60)"), stdout=PIPE
        ) as one:
            assert one.stdout is not None
            one.stdout.readline()
            assert one.poll() is None
            with pytest.raises(subprocess.TimeoutExpired):
                one.wait(0.01)
            one.send_signal(number)
            assert one.wait(60) == -number
