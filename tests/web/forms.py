"""Fills forms in as a browser does: with all fields that a page has, and what a person writes."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from starlette.testclient import TestClient


class Form:
    """A form of a page: its address, and its fields with their values."""

    def __init__(self, method: str, action: str) -> None:
        self.method = method
        self.action = action
        self.fields: dict[str, str] = {}


class _Forms(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[Form] = []
        self._area: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.found.append(Form(said.get("method", "get"), said["action"]))
        elif tag == "input" and "name" in said and (said.get("type") != "checkbox" or "checked" in said):
            self.found[-1].fields[said["name"]] = said.get("value", "")
        elif tag == "textarea":
            self._area = said["name"]
            self.found[-1].fields[self._area] = ""

    def handle_data(self, data: str) -> None:
        if self._area is not None:
            self.found[-1].fields[self._area] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self._area = None


def forms(page: str) -> list[Form]:
    """The forms of a page, in order."""
    found = _Forms()
    found.feed(page)
    return found.found


def form(page: str, path: str) -> Form:
    """The form that goes to this page of the console."""
    return next(each for each in forms(page) if f"/{path}" in each.action.partition("?")[0])


def submit(client: TestClient, page: str, path: str, **written: Any) -> Any:
    """Send a form with what was written into it; None takes a field away."""
    found = form(page, path)
    fields = {name: value for name, value in {**found.fields, **written}.items() if value is not None}
    if found.method == "post":
        return client.post(found.action, data=fields)
    return client.get(found.action.partition("?")[0], params=fields)
