"""A web console of a broker, played: it answers each POST as a test says."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

Answer: TypeAlias = tuple[int, bytes]
Asked: TypeAlias = list[tuple[str, Mapping[str, str], Any]]


@contextmanager
def serving(answer: Callable[[Mapping[str, str], Any], Answer]) -> Iterator[tuple[int, Asked]]:
    """Its port, and what it was asked: path, headers, body. ``answer``: to the headers and the body."""
    asked: Asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            headers, body = dict(self.headers), json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append((self.path, headers, body))
            status, said = answer(headers, body)
            self.send_response(status)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server.server_port, asked
        finally:
            server.shutdown()
            thread.join(10)
