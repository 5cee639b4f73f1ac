"""TLS before a broker that has none: for the pages that show how to connect over TLS."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

_DAYS = "2"


def make_certificates(folder: Path) -> None:
    """In the folder: a CA (ca.pem), and signed by it a server for localhost and a client, each .pem and .key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is needed to make certificates, and is not installed")

    def run(*arguments: str) -> None:
        subprocess.run([openssl, *arguments], check=True, capture_output=True, cwd=folder, timeout=150)  # noqa: S603  # of this test

    new = ("-newkey", "rsa:2048", "-nodes")
    usage = ("-addext", "keyUsage=critical,keyCertSign,cRLSign")  # which Python asks for from 3.13 on
    run("req", "-x509", *new, "-days", _DAYS, "-subj", "/CN=ca", *usage, "-keyout", "ca.key", "-out", "ca.pem")
    for name, subject in (("server", "localhost"), ("client", "shop")):
        run("req", *new, "-subj", f"/CN={subject}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        (folder / f"{name}.ext").write_text(f"subjectAltName=DNS:{subject}\n", encoding="utf-8")
        signed = ("-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial")
        run("x509", *signed, "-days", _DAYS, "-extfile", f"{name}.ext", "-out", f"{name}.pem")


@contextmanager
def tls_front(url: str, folder: Path) -> Iterator[int]:
    """The port where the broker of ``url`` is to be had over TLS, for clients with a certificate of the CA only."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(folder / "ca.pem"))
    context.load_cert_chain(folder / "server.pem", folder / "server.key")
    context.verify_mode = ssl.CERT_REQUIRED
    behind = urlsplit(url)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_serve, args=(listener, context, (behind.hostname, behind.port)), daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)  # wakes accept()
        thread.join(10)


def _serve(listener: socket.socket, context: ssl.SSLContext, behind: tuple[str, int]) -> None:
    """Each client in a thread, until the listener is shut down."""
    while True:
        try:
            accepted, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_forward, args=(accepted, context, behind), daemon=True).start()


def _forward(accepted: socket.socket, context: ssl.SSLContext, behind: tuple[str, int]) -> None:
    with (
        suppress(OSError),
        context.wrap_socket(accepted, server_side=True) as client,
        socket.create_connection(behind) as broker,
    ):
        back = threading.Thread(target=_copy, args=(broker, client), daemon=True)
        back.start()
        _copy(client, broker)
        back.join(10)


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)
