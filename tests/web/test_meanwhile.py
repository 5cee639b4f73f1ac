"""What happens beside an open page: another tab's run, a receipt of another broker, a broker that goes and comes."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.web.conftest import ADDRESS, Opened, dead
from tests.web.forms import form, submit

import redelivery
from redelivery.broker import EmbeddedBroker
from redelivery.web.application import console
from redelivery.web.asked import ConsoleSettings
from redelivery.web.sites import sites_of

DLQ = "ActiveMQ.DLQ"
ASK = {"queue": DLQ, "command": "replay"}


@pytest.mark.parametrize("consoles", [1, 2])
def test_two_tabs_do_the_same_at_once(broker: EmbeddedBroker, opened: Opened, consoles: int) -> None:
    """Each letter goes once, of one console or of two: what the other one has taken is not missed, and it is said."""
    dead(broker, *["ValueError: a"] * 40)
    tabs = [opened(broker.stomp_url, allow_writes=True) for _ in range(consoles)]
    pages = [(tab, tab.get("/console/preview", params=ASK).text) for tab in (tabs * 2)[:2]]
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda each: submit(each[0], each[1], "run"), pages))
    broker.wait_for("orders", depth=40, timeout=10)
    assert Counter(each.body for each in broker.messages("orders")) == Counter(f'{{"order": {n}}}' for n in range(40))
    assert broker.queue_depth(DLQ) == 0
    assert all(each.status_code in (200, 400) for each in answers)
    assert any("replayed" in each.text or "letters," in each.text for each in answers)


def test_a_letter_that_another_has_taken_is_not_there_at_any_step(broker: EmbeddedBroker, opened: Opened) -> None:
    dead(broker, "ValueError: a")
    client = opened(allow_writes=True)
    (letter,) = broker.messages(DLQ)
    ask = {**ASK, "id": str(letter.message_id)}
    preview, edit = client.get("/console/preview", params=ask).text, client.get("/console/edit", params=ask).text
    with redelivery.connect(broker.vm_url) as connection, connection.session() as session:
        assert session.consumer(DLQ).receive(timeout=2) is not None
    for page in ("letter", "edit", "preview"):
        gone = client.get(f"/console/{page}", params=ask)
        assert (gone.status_code, "is not here" in gone.text) == (404, True)
    assert "somebody has taken them" in submit(client, preview, "run").text
    edited = submit(client, edit, "edited")
    assert (edited.status_code, "is not here" in edited.text) == (404, True)
    assert broker.queue_depth("orders") == 0


def at(folder: Path, *urls: str) -> tuple[TestClient, list[str]]:
    """A console of several brokers, and their names in it."""
    settings = ConsoleSettings(sites_of((each, {}) for each in urls), folder, folder, allow_writes=True)
    return TestClient(console(settings), base_url=ADDRESS), list(settings.sites)


def test_a_receipt_of_another_broker_is_said(broker: EmbeddedBroker, tmp_path: Path) -> None:
    """Of one of the same kind the page says where the run was; one of another kind is refused by its name."""
    dead(broker, "ValueError: a")
    with EmbeddedBroker("other", stomp_port=0) as other:
        client, (here, there) = at(tmp_path, broker.stomp_url, other.stomp_url)
        done = submit(client, client.get(f"/{here}/preview", params=ASK).text, "run")
        (receipt,) = tmp_path.glob("*.jsonl")
        assert "This run was at" not in done.text
        page = client.get(f"/{there}/receipt", params={"name": receipt.name}).text
        assert f'This run was at <span class="mono">{broker.stomp_url}</span>' in page
    text = receipt.read_text().replace('"broker": "redelivery"', '"broker": "ActiveMQ Artemis"')
    assert text != receipt.read_text()
    receipt.write_text(text)
    for path in ("verify", "undo", "resume"):
        wrong: Any = client.get(f"/{here}/{path}", params={"name": receipt.name})
        if path != "verify":
            fields = form(done.text, "undo").fields
            wrong = client.post(f"/{here}/{path}?name={receipt.name}", data=fields)
        assert "is of ActiveMQ Artemis at" in wrong.text


def test_a_broker_that_comes_back_is_shown_again(tmp_path: Path) -> None:
    with EmbeddedBroker("first", stomp_port=0) as broker:
        port = int(broker.stomp_url.rpartition(":")[2])
        dead(broker, "ValueError: a")
        client, (here,) = at(tmp_path, broker.stomp_url)
        preview = client.get(f"/{here}/preview", params=ASK).text
        assert "ValueError: a" in client.get(f"/{here}/").text
    for path in ("", f"groups?queue={DLQ}"):
        gone = client.get(f"/{here}/{path}")
        assert (gone.status_code, "cannot be reached" in gone.text) == (502, True)
    assert submit(client, preview, "run").status_code == 502
    with EmbeddedBroker("second", stomp_port=port) as broker:
        dead(broker, "ValueError: b", "ValueError: b")
        page = client.get(f"/{here}/").text
        assert ("ValueError: b" in page, ">+1<" in page) == (True, True)
        assert "somebody has taken them" in submit(client, preview, "run").text
