"""Groups, letters, and one letter: nothing that a message says acts on the page."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from tests.web.conftest import Opened, dead
from tests.web.forms import forms, submit

import redelivery
from redelivery.broker import EmbeddedBroker
from redelivery.operate.management.interface import Cost

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{ 7*7 }}{% raw %}",
    "\x1b[31m\x1b]0;title\x07",
    "safe\u202eexe.txt\u2066\u200f\ufeff",
    "a\u2028b\u2029c",
    "NUL",
    "' onmouseover='x",
    "</textarea></pre></svg><h1>mine",
    "javascript:alert(1)",
)
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
PATHS = ("/console/", "/console/groups?queue=ActiveMQ.DLQ", "/console/letters?queue=ActiveMQ.DLQ")


class Outline(HTMLParser):
    """The elements and the names of their attributes, in order: what a page is made of but for its text."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, tuple[str, ...]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, tuple(name for name, _ in attrs)))


def outline(page: str) -> list[tuple[str, tuple[str, ...]]]:
    found = Outline()
    found.feed(page)
    return found.found


def letter_path(page: str) -> str:
    found = re.search(r'href="(/console/letter\?[^"]+)"', page)
    assert found is not None
    return found[1].replace("&amp;", "&")


def test_groups_have_their_count_and_their_times(broker: EmbeddedBroker, opened: Opened) -> None:
    dead(broker, *["ValueError: order 1 has no price"] * 3, "KeyError: 'sku'")
    page = opened().get("/console/groups?queue=ActiveMQ.DLQ").text
    assert "2 groups of 4 letters" in page
    assert page.index("has no price") < page.index("sku")
    by_type = opened().get("/console/groups?queue=ActiveMQ.DLQ&by=type").text
    assert "<strong>type</strong>" in by_type
    assert opened().get("/console/groups?queue=ActiveMQ.DLQ&by=colour").status_code == 400


def test_the_letters_of_a_group_are_its_own(broker: EmbeddedBroker, opened: Opened) -> None:
    dead(broker, *["ValueError: no price"] * 3, "KeyError: 'sku'")
    client = opened()
    groups = client.get("/console/groups?queue=ActiveMQ.DLQ").text
    group = re.search(r'href="(/console/letters\?[^"]*group=\w+)"', groups)
    assert group is not None
    page = client.get(group[1].replace("&amp;", "&")).text
    assert page.count("no price") == 3
    assert "sku" not in page


def test_letters_come_in_pages(broker: EmbeddedBroker, opened: Opened) -> None:
    dead(broker, *["ValueError: x"] * 120)
    client = opened()
    first = client.get("/console/letters?queue=ActiveMQ.DLQ").text
    assert len(re.findall(r"/console/letter\?", first)) == 50
    last = client.get("/console/letters?queue=ActiveMQ.DLQ&page=3").text
    assert len(re.findall(r"/console/letter\?", last)) == 20
    assert ('rel="next"' in first, 'rel="prev"' in first) == (True, False)
    assert ('rel="next"' in last, 'rel="prev"' in last) == (False, True)
    for page in ("0", "-1", "x", "201", "9" * 30, "٣"):
        assert client.get(f"/console/letters?queue=ActiveMQ.DLQ&page={page}").status_code == 400


def test_a_selector_chooses_them(broker: EmbeddedBroker, opened: Opened) -> None:
    dead(broker, "ValueError: eu", properties={"tenant": "eu"})
    dead(broker, "ValueError: us", properties={"tenant": "us"})
    client = opened()
    page = client.get("/console/letters", params={"queue": "ActiveMQ.DLQ", "where": "tenant = 'eu'"}).text
    assert ("ValueError: eu" in page, "ValueError: us" in page) == (True, False)
    wrong = client.get("/console/letters", params={"queue": "ActiveMQ.DLQ", "where": "tenant = = <b>"})
    assert (wrong.status_code, "<b>" in wrong.text) == (400, False)


def test_a_letter_says_all_that_it_has(broker: EmbeddedBroker, opened: Opened) -> None:
    dead(broker, "ValueError: no price", body='{"order": 1, "price": null}', properties={"tenant": "eu"})
    client = opened()
    path = letter_path(client.get("/console/letters?queue=ActiveMQ.DLQ").text)
    page = client.get(path).text
    assert "<dd>orders</dd>" in page
    assert "&#34;price&#34;: null" in page
    assert ">tenant<" in page
    assert "7b 22 6f 72 64 65 72" in client.get(f"{path}&view=hex").text
    assert client.get(f"{path}&view=text").text.count("{&#34;order&#34;: 1, &#34;price&#34;: null}") == 1


def test_attempts_stand_beside_the_times_of_the_policy(broker: EmbeddedBroker, opened: Opened) -> None:
    dead(broker, "ValueError: x")
    client = opened()
    page = client.get(letter_path(client.get("/console/letters?queue=ActiveMQ.DLQ").text)).text
    attempts = page[page.index('id="attempts"') : page.index('id="body"')]
    assert attempts.count("<svg") == 7
    assert attempts.count('class="band"') == 7
    assert "6 s" in attempts


@pytest.mark.parametrize("hostile", HOSTILE)
def test_what_an_attacker_writes_changes_no_page(broker: EmbeddedBroker, opened: Opened, hostile: str) -> None:
    said = hostile.replace("NUL", "\0")
    outlines = []
    for text in ("plain words", said):
        client = opened()
        with redelivery.connect(broker.vm_url) as connection, connection.session() as session:
            with session.consumer("ActiveMQ.DLQ") as consumer:
                consumer.receive(timeout=0)
            properties = {
                "dlqDeliveryFailureCause": f"Delivery[2] exceeds redelivery policy limit, cause:ValueError: {text}",
                "originalDestination": f"queue://{text if said.isprintable() else 'x'}",
                "note": text,
            }
            session.producer("ActiveMQ.DLQ").send(text, type=text, correlation_id=text, properties=properties)
        pages = [client.get(path) for path in PATHS]
        path = letter_path(pages[-1].text)
        pages += [client.get(path), client.get(f"{path}&view=hex")]
        assert {each.status_code for each in pages} == {200}
        outlines.append([outline(each.text) for each in pages])
        if text == said:
            for page in pages:
                assert not re.search(
                    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]", page.text
                )
    assert outlines[0] == outlines[1]


def test_the_name_of_a_property_or_a_queue_changes_no_page(broker: EmbeddedBroker, opened: Opened) -> None:
    queue = "<b>dlq\u202e</b>&x=1"
    with redelivery.connect(broker.stomp_url) as connection, connection.session() as session:
        session.producer(redelivery.Queue(queue)).send("x", properties={"<i>name</i>": "1"})
    client = opened()
    page = client.get("/console/letters", params={"queue": queue})
    assert (page.status_code, "<b>" in page.text, "\u202e" in page.text) == (200, False, False)
    one = client.get(letter_path(page.text))
    assert (one.status_code, "<i>" in one.text, "&lt;i&gt;name" in one.text) == (200, False, True)


@pytest.mark.parametrize("body", ["x" * 3_000_000, b"\xff" * 3_000_000, "[" * 100_000, '{"a":' * 20_000])
def test_a_huge_body_is_cut(broker: EmbeddedBroker, opened: Opened, body: object) -> None:
    dead(broker, "ValueError: x", body=body)
    client = opened()
    page = client.get(letter_path(client.get("/console/letters?queue=ActiveMQ.DLQ").text))
    assert page.status_code == 200
    assert len(page.text) < 1_000_000
    assert "export the letter" in page.text


def test_a_look_that_has_a_price_is_asked_for(
    broker: EmbeddedBroker, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead(broker, "ValueError: x")
    cost = Cost(counts=True, says="each look counts as a delivery")
    monkeypatch.setattr("redelivery.web.prices.price", lambda *_: cost)
    client = opened(allow_writes=True)
    for path in ("groups", "letters", "letter", "export", "preview", "edit"):
        page = client.get(f"/console/{path}?queue=ActiveMQ.DLQ&command=replay").text
        assert "each look counts as a delivery" in page
        assert "ValueError" not in page
    page = client.get("/console/preview?queue=ActiveMQ.DLQ&command=replay").text
    agreed = client.get("/console/preview", params=forms(page)[0].fields).text
    assert "1 letter replayed" in submit(client, agreed, "run").text


def test_a_letter_that_is_gone_is_said(broker: EmbeddedBroker, opened: Opened) -> None:
    dead(broker, "ValueError: x")
    for id_ in ("ID:none", "ID:'; --", "x" * 3000):
        answer = opened().get("/console/letter", params={"queue": "ActiveMQ.DLQ", "id": id_})
        assert (answer.status_code, "is not here" in answer.text) == (404, True)
    assert opened().get("/console/letter?queue=ActiveMQ.DLQ&place=2").status_code == 404
    assert opened().get("/console/letter?queue=ActiveMQ.DLQ&place=1").status_code == 200
    assert opened().get("/console/letter").status_code == 400
    assert opened().get("/console/letters?queue=topic://x").status_code == 400
