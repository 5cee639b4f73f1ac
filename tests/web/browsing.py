"""A console that listens on a port, and Debian's Chromium, which looks at it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn
from starlette.types import ASGIApp

from redelivery.web.server import listening

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, ViewportSize

AXE = Path(__file__).with_name("axe.min.js")
_CI = os.environ.get("CI", "").lower() in {"1", "true"}
PHONE: ViewportSize = {"width": 375, "height": 720}
DESK: ViewportSize = {"width": 1280, "height": 860}


@contextmanager
def served(app: ASGIApp) -> Iterator[str]:
    """The address of a console, which runs in a thread."""
    with listening("127.0.0.1", 0) as listener:
        config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", ws="none")
        server = uvicorn.Server(config)
        thread = Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = server.force_exit = True
            thread.join(10)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Chromium; where it is missing the test is skipped, and fails in CI."""
    found = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        found, lacks = None, "the package playwright"
    else:
        lacks = "Debian's chromium"
    if found is None:
        reason = f"browser: {lacks} is missing"
        if _CI:
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()


def looked_at(page: Page) -> list[str]:
    """All that is wrong with a page: what axe says of contrast, names and structure, and a line wider than it."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found: Any = page.evaluate("async () => (await axe.run({resultTypes: ['violations']})).violations")
    wrong = [f"{each['id']}: {each['help']}: {[node['html'] for node in each['nodes']][:3]}" for each in found]
    wide = page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return [*wrong, *([f"{page.url} is {wide} px wider than the window"] if wide > 0 else [])]
