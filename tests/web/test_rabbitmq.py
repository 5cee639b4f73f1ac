"""The console over RabbitMQ, of which its management tells what it shows: each protocol, 3 and 4."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import sleep
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from starlette.testclient import TestClient
from tests.run.rabbitmq import SITES, ManagedSite, broker_of
from tests.web.conftest import ADDRESS
from tests.web.forms import forms, submit

from redelivery import Queue
from redelivery.model.errors import InvalidDestinationError
from redelivery.operate.letters.receipts.receipt import read_receipt
from redelivery.operate.letters.receipts.undoing import undo
from redelivery.operate.letters.receipts.writer import ReceiptWriter
from redelivery.testing.brokers.real import RealBroker
from redelivery.web.application import console
from redelivery.web.asked import ConsoleSettings
from redelivery.web.sites import sites_of

CAUSE = "Delivery[1] exceeds redelivery policy limit:RedeliveryPolicy, cause:ValueError: no "
PRICE = "A look into {} has a price"
QUORUM_4 = SITES[2:]  # where each look counts towards a limit


class Site(ManagedSite):
    """With a queue, its dead letters, and a browser that looks at the console."""

    def __init__(self, broker: RealBroker, protocol: str, folder: Path) -> None:
        super().__init__(broker, protocol)
        self.folder = folder
        self.origin = f"web/orders.{uuid4().hex[:8]}"
        self.letters = f"{self.origin}.DLQ"
        self.client = self.console(self.http)

    def console(self, management: str | None) -> TestClient:
        (site,) = sites_of([(self.url, {} if management is None else {"management": management})]).values()
        settings = ConsoleSettings(
            {"mq": replace(site, key="mq")}, self.folder, self.folder, queues=(Queue(self.letters),), allow_writes=True
        )
        return TestClient(console(settings), base_url=ADDRESS)

    def make(self, kind: str) -> None:
        for name in (self.origin, self.letters):
            self.management.api.declare_queue(name, arguments={"x-queue-type": kind})

    def fail(self, *names: str) -> None:
        with self.connection.session() as session:
            for name in names:
                said = {"originalDestination": f"queue://{self.origin}", "dlqDeliveryFailureCause": CAUSE + name}
                session.producer(Queue(self.letters)).send(f"order of {name}", properties=said)

    def get(self, path: str, agreed: bool, **fields: str) -> str:
        """A page of the dead letters; ``agreed``: it asks before it looks, and is told to."""
        page = self.client.get(f"/mq/{path}", params={"queue": self.letters, **fields})
        assert page.status_code == 200
        if not agreed:
            return str(page.text)
        assert PRICE.format(self.letters) in page.text
        assert "no price" not in page.text
        return self.look_all_the_same(page)

    def look_all_the_same(self, page: Any) -> str:
        (asked,) = [each for each in forms(page.text) if "look" in each.fields]
        address = str(page.url)
        if asked.method == "post":
            return str(self.client.post(address, data=asked.fields).text)
        return str(self.client.get(address.partition("?")[0], params=asked.fields).text)

    def close(self) -> None:
        for each in (self.origin, self.letters):
            with suppress(InvalidDestinationError):
                self.management.api.delete_queue(each)
        self.connection.close()


@pytest.fixture(params=SITES)
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    made = Site(*broker_of(request), tmp_path)
    yield made
    made.close()


def story(site: Site, agreed: bool) -> None:
    """Groups, a letter, replay with its preview, the receipt, verify, undo."""
    site.fail("price", "price", "sku")
    page = site.get("groups", agreed)
    assert [each in page for each in ("2 groups of 3 letters", "ValueError: no price", "ValueError: no sku")] == [
        True
    ] * 3
    group = re.search(r"group=(\w+)\">[^<]*no price", page)
    assert group is not None
    page = site.get("letters", agreed, group=group[1])
    assert page.count("ValueError: no price") == 2
    page = site.get("preview", agreed, command="replay", group=group[1])
    assert ("Replay 2 letters?" in page, "If they fail again" in page) == (True, True)
    done = submit(site.client, page, "run")
    assert "2 letters replayed" in done.text
    (receipt,) = site.folder.glob("*.jsonl")
    proof = site.client.get("/mq/verify", params={"name": receipt.name})
    assert "The receipt holds" in (site.look_all_the_same(proof) if agreed else proof.text)
    undone = submit(site.client, done.text, "undo")
    assert "2 letters put back" in (site.look_all_the_same(undone) if agreed else undone.text)
    assert sorted(str(each.body) for each in site.messages(site.letters)) == ["order of price"] * 2 + ["order of sku"]


def test_letters_are_found_replayed_and_put_back(site: Site) -> None:
    site.make("classic")
    story(site, agreed=False)


@pytest.mark.parametrize("site", QUORUM_4, indirect=True)
def test_each_look_that_counts_is_asked_for(site: Site) -> None:
    """Also where a receipt is verified and undone: what is asked is the queue that the letters were sent to."""
    site.make("quorum")
    story(site, agreed=True)


@pytest.mark.parametrize("site", QUORUM_4, indirect=True)
def test_undo_without_a_console_looks_at_a_queue_once(site: Site) -> None:
    """As `redelivery.operate` offers it; it found nothing there, without a word."""
    site.make("quorum")
    site.fail("price", "sku")
    submit(site.client, site.get("preview", True, command="replay"), "run")
    (path,) = site.folder.glob("*.jsonl")
    receipt = read_receipt(path)
    writer = ReceiptWriter(path, batches=receipt.batches, keep=False)
    try:
        assert undo(site.connection, receipt, writer) == 2
    finally:
        writer.close()
    assert sorted(str(each.body) for each in site.messages(site.letters)) == ["order of price", "order of sku"]


@pytest.mark.parametrize(
    "site", [pytest.param(SITES[0], marks=pytest.mark.long_form), SITES[-1]], ids=[SITES[0], SITES[-1]], indirect=True
)
def test_the_first_page_counts_them_when_the_management_does(site: Site) -> None:
    """It collects numbers every 5 s; growth is what has come since the first look."""
    site.make("classic")

    def row() -> str:
        page = site.client.get("/mq/").text
        return str(next(each for each in page.split("<tr>") if site.letters in each))

    assert "first look" in row()
    site.fail("price", "price", "sku")
    for _ in range(80):
        if ">+3<" in row():
            break
        sleep(0.25)
    assert re.search(r'data-label="Letters">3<', row())
    assert "ValueError: no price" in row()
    assert "s ago" in row()


REFUSED: dict[str, tuple[Callable[[int], str | None], str, int]] = {
    "none": (lambda _: None, "name its management, --management http://", 501),
    "a wrong password": (lambda port: f"http://guest:hunter2secret@127.0.0.1:{port}", "refuses this user", 502),
    "no permission": (lambda port: f"http://restricted:restricted@127.0.0.1:{port}", "refuses this user", 502),
    "away": (lambda _: "http://guest:hunter2secret@127.0.0.1:1", "there is no management at", 502),
}


@pytest.mark.parametrize("site", SITES[:1] + SITES[-1:], indirect=True)
@pytest.mark.parametrize("case", REFUSED)
def test_a_management_that_does_not_answer_is_said_on_each_page(site: Site, case: str) -> None:
    url, words, status = REFUSED[case]
    port = urlsplit(site.http).port
    assert port is not None
    site.make("classic")
    client = site.console(url(port))
    for path in ("", "groups", "letters", "preview", "edit", "export"):
        page = client.get(f"/mq/{path}", params={"queue": site.letters, "command": "replay"})
        assert (path, page.status_code, words in page.text) == (path, status, True)
        assert "hunter2secret" not in page.text
    rules = client.get("/mq/policies").text
    assert ("does not say its rules" in rules, case == "none" or "s rules: " in rules) == (True, True)
    assert client.get("/mq/doctor").status_code == 200
