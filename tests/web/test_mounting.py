"""The console within an application of Starlette or FastAPI: its links, and what is the application's own."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Router
from starlette.testclient import TestClient
from tests.web.conftest import ADDRESS, dead
from tests.web.forms import submit

from redelivery.broker import EmbeddedBroker
from redelivery.model.errors import ConfigError
from redelivery.web import mount

TOKEN = "sixteen letters and more"  # noqa: S105  # of the test


def fast_api(**options: Any) -> Starlette:
    """An application of FastAPI; it is not in every environment of this project, but in CI."""
    found: Starlette = pytest.importorskip("fastapi").FastAPI(**options)
    return found


KINDS: dict[str, Callable[..., Starlette]] = {"starlette": Starlette, "fastapi": fast_api}
kinds = pytest.mark.parametrize("kind", KINDS)


def within(app: Any, *path: str) -> Any:
    """The application, below these paths of others: one `Mount` in the other."""
    for each in reversed(path):
        app = Starlette(routes=[Mount(each, app=app)])
    return app


def links(page: str) -> list[str]:
    return re.findall(r'(?:src|href|action|hx-get)="([^"#]+)', page)


@pytest.mark.in_turns("path")
@kinds
@pytest.mark.parametrize("path", ["/redelivery", "/ops/letters"])
@pytest.mark.parametrize("outer", [(), ("/shop",), ("/shop", "/eu.west")])
def test_it_is_mounted_into_an_application(
    broker: EmbeddedBroker, kind: str, path: str, outer: tuple[str, ...]
) -> None:
    dead(broker, "ValueError: a")
    app = KINDS[kind]()
    mount(app, broker.vm_url, path=path)
    root = "".join(outer) + path
    client = TestClient(within(app, *outer), base_url=ADDRESS)
    page = client.get(f"{root}/")
    assert (page.status_code, page.url.path) == (200, f"{root}/console/")
    assert links(page.text)
    for each in links(page.text):
        assert each.startswith(f"{root}/")
        assert client.get(each.replace("&amp;", "&")).status_code in (200, 400)  # a form, without its fields
    assert client.get(root).url.path == f"{root}/console/"
    assert TestClient(within(app, *outer), base_url="http://evil.example").get(f"{root}/").status_code == 421


@kinds
@pytest.mark.parametrize("stripped", [True, False])
def test_a_proxy_may_take_a_prefix_away(broker: EmbeddedBroker, kind: str, stripped: bool) -> None:
    """Some hand on the path as the browser sent it, others without the prefix; ``root_path`` says it in both cases."""
    dead(broker, "ValueError: a")
    app = KINDS[kind]()
    mount(app, broker.vm_url, path="/ops", token=TOKEN)
    proxy = TestClient(app, base_url=ADDRESS, root_path="/api/v1", follow_redirects=False)

    def get(path: str, **given: Any) -> Any:
        return proxy.get(path.removeprefix("/api/v1") if stripped else path, **given)

    refused = get("/api/v1/ops/console/")
    assert refused.headers["location"] == "/api/v1/ops/login"
    assert "Path=/api/v1/ops" in refused.headers["set-cookie"]
    assert get("/api/v1/ops/static/style.css").status_code == 200
    bearer = {"authorization": f"Bearer {TOKEN}"}
    page = get("/api/v1/ops/console/", headers=bearer)
    assert page.status_code == 200
    for each in links(page.text):
        assert each.startswith("/api/v1/ops/")
        assert get(each.replace("&amp;", "&"), headers=bearer).status_code in (200, 303, 400)


@kinds
def test_what_is_the_applications_own_stays_so(broker: EmbeddedBroker, kind: str, tmp_path: Path) -> None:
    """Its routes, its middleware, which the console's pages pass, its lifespan, and its threads: here a run."""
    dead(broker, "ValueError: a")
    said: list[str] = []

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        said.append("up")
        yield
        said.append("down")

    async def own(request: Request) -> Response:
        return PlainTextResponse(f"order {request.path_params['number']}")

    async def timed(request: Request, call_next: Callable[[Request], Any]) -> Any:
        response = await call_next(request)
        response.headers["x-timed"] = "1"
        return response

    layers = [Middleware(CORSMiddleware, allow_origins=["*"]), Middleware(GZipMiddleware, minimum_size=10)]
    app = KINDS[kind](lifespan=lifespan, middleware=[*layers, Middleware(BaseHTTPMiddleware, dispatch=timed)])
    app.add_route("/orders/{number}", own)
    mount(app, broker.vm_url, path="/orders/letters", allow_writes=True, receipts=tmp_path)
    with TestClient(app, base_url=ADDRESS) as client:
        assert client.get("/orders/7").text == "order 7"
        page = client.get("/orders/letters/")
        assert (page.headers["x-timed"], page.headers["content-encoding"]) == ("1", "gzip")
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert "content-security-policy" not in client.get("/orders/7").headers
        preview = client.get("/orders/letters/console/preview?queue=ActiveMQ.DLQ&command=replay").text
        assert "1 letter replayed" in submit(client, preview, "run").text
        exported = client.get("/orders/letters/console/export?queue=ActiveMQ.DLQ")
        assert exported.status_code == 400  # there are none left
        assert said == ["up"]
    assert said == ["up", "down"]
    assert broker.queue_depth("orders") == 1


def test_fastapi_documents_none_of_its_pages_and_guards_none_by_its_dependencies(broker: EmbeddedBroker) -> None:
    """So the guide says: dependencies are for its own routes; a token, or a middleware, is before the console."""
    fastapi = pytest.importorskip("fastapi")

    def refuse() -> None:
        raise fastapi.HTTPException(401)

    app = fast_api(dependencies=[fastapi.Depends(refuse)])
    app.add_api_route("/orders", lambda: [], methods=["GET"])  # type: ignore[attr-defined]  # FastAPI's
    mount(app, broker.vm_url)
    mount(app, broker.vm_url, path="/guarded", token=TOKEN)
    client = TestClient(app, base_url=ADDRESS)
    assert client.get("/orders").status_code == 401
    assert client.get("/redelivery/").status_code == 200
    assert "Log in" in client.get("/guarded/").text
    assert list(client.get("/openapi.json").json()["paths"]) == ["/orders"]


def test_an_application_says_its_own_names(broker: EmbeddedBroker) -> None:
    app = Starlette()
    mount(app, [broker.vm_url, broker.stomp_url], hosts=["shop.example"])
    page = TestClient(app, base_url="https://shop.example").get("/redelivery/")
    assert page.status_code == 200
    assert page.text.count("aria-current") == 2


@pytest.mark.parametrize("path", ["", "/", "console", "/console/"])
def test_a_path_that_is_none_is_refused(path: str) -> None:
    with pytest.raises(ConfigError, match="path="):
        mount(Starlette(), "vm://x", path=path)


@pytest.mark.parametrize("app", [Router(), None, "app:app"], ids=["router", "none", "text"])
def test_what_is_no_application_is_refused(app: Any) -> None:
    """A router's own mounts are lost where an application of FastAPI includes it."""
    with pytest.raises(ConfigError, match="application of Starlette or FastAPI, and not"):
        mount(app, "vm://x")


def test_a_transport_that_is_not_there_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> Any:
        raise ConfigError("amqp:// needs a package that is not installed")

    monkeypatch.setattr("redelivery.web.sites.transport_class", missing)
    with pytest.raises(ConfigError, match="not installed"):
        mount(Starlette(), "amqp://127.0.0.1")
