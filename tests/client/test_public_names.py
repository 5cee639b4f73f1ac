"""An object that an application holds shows what the guide documents, and nothing of its machinery."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import redelivery
from redelivery import aio

GUIDE = "\n".join(path.read_text(encoding="utf-8") for path in (Path(__file__).parents[2] / "docs/guide").glob("*.md"))
CLASSES = ("Connection", "Session", "Consumer", "Producer", "Publisher", "QueueBrowser", "ListenerContainer")


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("shell", [redelivery, aio], ids=["threads", "asyncio"])
def test_every_name_is_documented(shell: object, name: str) -> None:
    public = [each for each in dir(getattr(shell, name)) if not each.startswith("_")]
    assert [each for each in public if not re.search(rf"[.`]{each}\b", GUIDE)] == []


def test_an_object_shows_no_more_than_its_class() -> None:
    with redelivery.connect("vm://public-names") as connection, connection.session() as session:
        consumer, producer = session.consumer("orders"), session.producer("orders")
        shown = (connection, session, consumer, producer, session.browser("orders"), connection.publisher())
        for each in shown:
            assert [name for name in vars(each) if not name.startswith("_")] == []
