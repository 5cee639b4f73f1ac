"""A broker that does not answer within request_timeout: what was asked is in doubt, and never taken for done."""

from __future__ import annotations

from time import monotonic

import pytest
from tests.client.gated import Site
from tests.client.shell import SOON
from tests.conformance.blocking import Shell

from redelivery import InDoubtError, RequestTimeoutError

LIMIT = 1.0  # seconds: all that is asked before has its answer by then, on a busy machine too


@pytest.mark.parametrize(("mode", "command"), [("auto", "SEND"), ("transacted", "COMMIT")], ids=["send", "commit"])
def test_it_is_in_doubt(site: Site, shell: Shell, mode: str, command: str) -> None:
    site.broker.faults.swallow(command)
    began = monotonic()
    with pytest.raises(InDoubtError) as raised:
        send(shell, site, mode)
    assert LIMIT <= monotonic() - began < SOON
    assert isinstance(raised.value.__cause__, RequestTimeoutError)
    assert [each.body for each in raised.value.sent] == ["x"]


def send(shell: Shell, site: Site, mode: str) -> None:
    with shell.connect(site.url, request_timeout=LIMIT, close_timeout=LIMIT) as connection:
        session = connection.session(mode)
        session.producer("orders").send("x")
        if session.transacted:
            session.commit()
