"""The console in a real browser: the operator's story, without a mouse, on a phone, in the dark and without scripts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.run import forms
from tests.web.browsing import DESK, PHONE, chromium, looked_at, served
from tests.web.shop import DLQ, letters

import redelivery
from redelivery.broker import EmbeddedBroker
from redelivery.policies import read
from redelivery.web.application import console
from redelivery.web.asked import ConsoleSettings
from redelivery.web.sites import sites_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.short_form
LETTERS = 80 if forms.brief() else 5000
RULES = (
    '<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core"><address-settings><address-setting match="#">'
    "<dead-letter-address>ActiveMQ.DLQ</dead-letter-address><max-delivery-attempts>5</max-delivery-attempts>"
    "<redelivery-delay>1000</redelivery-delay><redelivery-delay-multiplier>2</redelivery-delay-multiplier>"
    "</address-setting></address-settings></core></configuration>"
)


def card(_: redelivery.Message) -> None:
    raise TimeoutError("card of order 7 was not authorized in 30 s")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker("shop", stomp_port=0) as found:
        yield found


@pytest.fixture
def address_of(broker: EmbeddedBroker, tmp_path: Path) -> Iterator[str]:
    rules = tmp_path / "broker.xml"
    rules.write_text(RULES)
    sites = sites_of([(broker.vm_url, {})])
    settings = ConsoleSettings(sites, tmp_path / "receipts", tmp_path, read(str(rules), strict=False), (), True)
    with served(console(settings)) as found:
        yield found


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport=DESK, accept_downloads=True)
    opened = context.new_page()
    said: list[str] = []
    opened.on("console", lambda each: said.append(each.text) if each.type in ("error", "warning") else None)
    opened.on("pageerror", lambda each: said.append(str(each)))
    yield opened
    context.close()
    assert said == []  # neither a script's error nor something that the policy for content has refused


def ended(page: Page) -> None:
    """Wait until a run has come to its end: the page says so by itself."""
    page.wait_for_selector("#run .actions", timeout=90_000)


def test_the_operators_story(page: Page, broker: EmbeddedBroker, address_of: str) -> None:
    quarter = LETTERS // 4
    letters(broker, LETTERS)
    page.goto(address_of)  # find
    page.get_by_role("link", name=DLQ, exact=True).click()
    assert f"4 groups of {LETTERS:,}".replace(",", "\u202f") in page.inner_text("main")
    page.get_by_role("link", name="KeyError: 'price'").click()  # understand
    page.locator("tbody a").first.click()
    assert "price" in page.inner_text("main")
    assert page.locator(".attempts .dot").count() == 5
    page.go_back()
    page.get_by_role("link", name="Edit…").click()  # fix one group by edit
    page.get_by_label("Changes").fill("body.price=5")
    page.get_by_role("button", name="Show the difference").click()
    assert '"price": 5' in page.inner_text(".diff")
    page.get_by_role("button", name="Edit and replay").click()
    ended(page)
    assert "edited and replayed" in page.inner_text("#run")
    page.get_by_role("link", name="Verify").click()
    assert "The receipt holds" in page.inner_text("#run")
    assert broker.queue_depth("orders") == quarter
    with redelivery.connect(broker.vm_url) as connection, connection.session() as session:
        session.consumer("orders").listen(lambda _: None)
        broker.wait_for("orders", depth=0, timeout=60)

    def replay() -> None:
        page.goto(address_of)
        page.get_by_role("link", name=DLQ, exact=True).click()
        page.get_by_role("link", name="TimeoutError").first.click()
        page.get_by_role("link", name="Replay…").click()
        assert "each will be tried 5 times over " in page.inner_text("main")
        page.get_by_label("So many first").fill("3")
        page.get_by_label("Seconds to wait").fill("3")
        page.locator("button.primary").click()
        ended(page)

    never = redelivery.RedeliveryPolicy(maximum_redeliveries=0)
    with redelivery.connect(broker.vm_url, redelivery_policy=never) as connection, connection.session() as session:
        session.consumer("orders").listen(card)  # fails again
        replay()
        assert "came back" in page.inner_text("#run")
    with redelivery.connect(broker.vm_url) as connection, connection.session() as session:
        session.consumer("orders").listen(lambda _: None)  # is repaired
        replay()
        assert "letters replayed" in page.inner_text("#run")
    page.goto(f"{address_of}/shop/letters?queue={DLQ}")
    with page.expect_download() as download:  # export the rest
        page.get_by_role("link", name="Export").click()
    assert len(Path(download.value.path()).read_text().splitlines()) == LETTERS // 2 + 3
    page.get_by_role("link", name="Delete…").click()  # purge
    page.get_by_role("button", name="Delete").click()
    ended(page)
    assert broker.queue_depth(DLQ) == 0
    page.get_by_role("button", name="Undo").click()  # and undo the purge
    ended(page)
    assert broker.queue_depth(DLQ) == LETTERS // 2 + 3


PAGES = (
    *("", f"groups?queue={DLQ}", f"letters?queue={DLQ}", "LETTER", f"preview?queue={DLQ}&command=replay"),
    *(f"edit?queue={DLQ}", "receipts", "policies", "policy?destination=orders", "doctor", "letters?queue=topic://x"),
)

LOOKS = (("light", DESK), ("dark", PHONE), ("dark", DESK), ("light", PHONE))


@pytest.mark.parametrize("way", range(2 if forms.brief() else 4))
def test_every_page_can_be_read_by_everybody(
    browser: Browser, broker: EmbeddedBroker, address_of: str, way: int
) -> None:
    letters(broker, 8)
    scheme, size = LOOKS[way]
    context = browser.new_context(viewport=size, color_scheme=scheme)  # type: ignore[arg-type]  # one of two words
    page = context.new_page()
    wrong: dict[str, list[str]] = {}
    for path in PAGES[way % 2 :: 2] if forms.brief() else PAGES:  # each page once, or each in each way
        if path == "LETTER":
            page.goto(f"{address_of}/shop/letters?queue={DLQ}")
            page.locator("tbody a").first.click()
        else:
            page.goto(f"{address_of}/shop/{path}")
        wrong[path] = looked_at(page)
    context.close()
    assert {path: each for path, each in wrong.items() if each} == {}


def test_it_needs_no_mouse(page: Page, broker: EmbeddedBroker, address_of: str) -> None:
    letters(broker, 8)
    page.goto(f"{address_of}/shop/preview?queue={DLQ}&command=purge")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.goto(f"{address_of}/shop/preview?queue={DLQ}&command=purge")
    wanted = page.evaluate(
        "[...document.querySelectorAll('a[href], button, input:not([type=hidden]), [tabindex=\"0\"]')].length"
    )
    seen: list[Any] = []
    for _ in range(wanted):
        page.keyboard.press("Tab")
        seen.append(
            page.evaluate(
                "(() => { const e = document.activeElement, s = getComputedStyle(e);"
                " return [e.tagName, [...document.querySelectorAll('*')].indexOf(e), s.outlineStyle]; })()"
            )
        )
    assert len({at for _, at, _ in seen}) == wanted
    assert {outline for _, _, outline in seen} == {"solid"}
    page.locator("button.primary").focus()
    page.keyboard.press("Enter")
    ended(page)
    assert broker.queue_depth(DLQ) == 0


def test_it_needs_no_script(browser: Browser, broker: EmbeddedBroker, address_of: str) -> None:
    letters(broker, 8)
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address_of}/shop/preview?queue={DLQ}&command=replay")
    page.locator("button.primary").click()
    page.wait_for_selector("#run .actions")
    assert broker.queue_depth("orders") == 8
    context.close()


def test_nothing_jumps_and_the_first_page_looks_again(page: Page, broker: EmbeddedBroker, address_of: str) -> None:
    letters(broker, 8)
    page.clock.install()
    page.goto(address_of)
    broker.send(DLQ, "one more")
    page.clock.fast_forward(21_000)
    page.locator("td.big").get_by_text("9", exact=True).wait_for()
    moved = page.evaluate(
        "new Promise(done => new PerformanceObserver(list => done(list.getEntries().reduce((a, e) => a + e.value, 0)))"
        ".observe({type: 'layout-shift', buffered: true}) || setTimeout(() => done(0), 300))"
    )
    assert moved < 0.01
