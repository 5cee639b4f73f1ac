"""Two programs with a transaction each at the same time: the end of the one is not the end of the other.

Each is a process of its own, so that what they count, they count alike.
"""

from __future__ import annotations

import subprocess
import sys
import uuid
from contextlib import ExitStack

import pytest
from tests.conformance.pairs import PAIRS, Kind, Pair
from tests.conformance.stage import Stage
from tests.run.forked import Forked

_PROGRAM = """
import sys, redelivery
url, queue, body = sys.argv[1:]
with redelivery.connect(url) as connection, connection.session("transacted") as session:
    session.producer(queue).send(body)
    print("sent", flush=True)
    if sys.stdin.readline() == "commit\\n":
        session.commit()
"""
TRANSACTED = [kind for kind in PAIRS.values() if kind.real and "transactions" not in kind.cannot]


@pytest.mark.parametrize("kind", TRANSACTED, ids=lambda kind: kind.name)
def test_a_commit_is_of_ones_own_transaction_only(kind: Kind, request: pytest.FixtureRequest) -> None:
    assert kind.broker is not None
    pair = Pair(kind, getattr(request.getfixturevalue(kind.broker), f"{kind.protocol}_url"))
    queue = f"faults.two.{uuid.uuid4().hex[:8]}"
    with ExitStack() as opened:
        programs = []
        for body in ("killed", "committed"):
            command = [sys.executable, "-c", _PROGRAM, pair.url, queue, body]
            program = Forked[str](command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            opened.enter_context(program)
            opened.callback(program.kill)
            programs.append(program)
            assert program.stdout is not None
            assert program.stdout.readline() == "sent\n"
        programs[1].communicate("commit\n", timeout=150)
        assert programs[1].returncode == 0
        programs[0].kill()
        programs[0].wait()
        assert Stage(pair, queue, opened).left_bodies(at_least=1) == ["committed"]
