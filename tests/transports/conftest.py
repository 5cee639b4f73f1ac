"""What tests of the transports need from the rest of the process."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.traces import runner
from tests.transports.sides import side  # noqa: F401  # a fixture


@pytest.fixture
def alone() -> Iterator[None]:
    """No trace is played in this process meanwhile: its connections have threads, and take time, of their own."""
    with runner.alone():
        yield


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is needed to make a certificate, and is not installed")
    folder = tmp_path_factory.mktemp("tls")
    for name in ("localhost", "ann"):
        command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}"]
        files = ["-keyout", str(folder / f"{name}.key"), "-out", str(folder / f"{name}.pem")]
        names = ["-addext", f"subjectAltName=DNS:{name}"]
        subprocess.run([*command, *files, *names], check=True, capture_output=True)  # noqa: S603  # of this test
    return folder


@pytest.fixture
def server_tls(certificates: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "localhost.pem", certificates / "localhost.key")
    return context


@pytest.fixture
def trusting(certificates: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificates / "localhost.pem"))
