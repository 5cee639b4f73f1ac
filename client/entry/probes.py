"""The pages that an orchestrator and Prometheus ask for: ``/live``, ``/ready`` and ``/metrics``."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from redelivery.client.entry.metrics import RunningApp, page
from redelivery.model.errors import ConfigError

_TEXT: Final = "text/plain; charset=utf-8"
_SECONDS: Final = 5.0  # for a request to be there
_POLL: Final = 0.1


@contextmanager
def probes(app: RunningApp, port: int, bind: str) -> Iterator[int]:
    """Serve the pages meanwhile; the port, of which 0 takes a free one. Raises ConfigError: the port cannot be had."""
    try:
        server = _ProbeServer((bind, port), type("_PagesOfApp", (_Pages,), {"app": app, "page": staticmethod(_page())}))
    except (OSError, OverflowError) as error:
        raise ConfigError(f"--health-port {port}: {bind} cannot be listened on: {error}") from error
    thread = threading.Thread(target=server.serve_forever, args=(_POLL,), name="redelivery-probes", daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _page() -> Callable[[RunningApp, str], tuple[bytes, str]]:
    try:
        from redelivery.client.entry.library import library_page
    except ImportError:  # prometheus-client is not installed
        return page
    return library_page


class _ProbeServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # one that is slow ends by its time-out

    def handle_error(self, request: Any, client_address: Any) -> None:  # who asked has gone
        """Nothing: a probe that was cut is nobody's error."""


class _Pages(BaseHTTPRequestHandler):
    app: RunningApp
    page: staticmethod[[RunningApp, str], tuple[bytes, str]]
    timeout = _SECONDS

    def do_GET(self) -> None:
        """Answer with the page."""
        match self.path.partition("?")[0]:
            case "/live":
                self._answer(200, "live\n")
            case "/ready":
                self._answer(*self._ready())
            case "/metrics":
                self._answer(200, *self.page(self.app, self.headers.get("Accept", "")))
            case _:
                self._answer(404, "there are /live, /ready and /metrics\n")

    do_HEAD = do_GET

    def _ready(self) -> tuple[int, str]:
        if self.app.healthy:
            return 200, "ready\n"
        if not self.app.containers:
            return 503, "not ready: it does not listen yet, or has ended\n"
        names = [each._settings.name for each in self.app.containers if not each.healthy]
        return 503, f"not ready: {', '.join(names)}\n"

    def _answer(self, status: int, text: str | bytes, kind: str = _TEXT) -> None:
        body = text.encode("utf-8", "backslashreplace") if isinstance(text, str) else text
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: each probe would be a line."""
