"""Brokers as Amazon MQ runs them: each port with TLS, everybody logs in, and two that share a store."""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.examples.tls_front import make_certificates

from redelivery.testing.brokers.native import NativeBroker
from redelivery.testing.brokers.spec import BrokerSpec, Site
from redelivery.testing.brokers.specs import activemq, rabbitmq4

USER, PASSWORD = "admin", "admin"
_SECRET = "changeit"  # noqa: S105  # of the key store
_STORE = (
    """<kahaDB directory="{store}"><locker><shared-file-locker lockAcquireSleepInterval="200"/></locker></kahaDB>"""
)
_TLS = """\
<sslContext><sslContext keyStore="file:{keys}" keyStoreType="PKCS12" keyStorePassword="{secret}"/></sslContext>
    """
_RABBITMQ_TLS = """
listeners.ssl.1 = {host}:{amqps}
ssl_options.cacertfile = {folder}/ca.pem
ssl_options.certfile = {folder}/server.pem
ssl_options.keyfile = {folder}/server.key
management.ssl.port = {https}
management.ssl.ip = {host}
management.ssl.cacertfile = {folder}/ca.pem
management.ssl.certfile = {folder}/server.pem
management.ssl.keyfile = {folder}/server.key
"""


def certificates(folder: Path) -> Path:
    """A folder with a CA, and a certificate of localhost as PEM and PKCS12."""
    make_certificates(folder)
    openssl = shutil.which("openssl")
    assert openssl is not None
    files = ["-in", "server.pem", "-inkey", "server.key", "-out", "server.p12", "-passout", f"pass:{_SECRET}"]
    subprocess.run([openssl, "pkcs12", "-export", *files], check=True, capture_output=True, cwd=folder, timeout=150)  # noqa: S603  # of this test
    return folder


def trusting(folder: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(folder / "ca.pem"))


def check_there(spec: BrokerSpec) -> None:
    """Skip, or fail in CI, where the broker's own distribution is not to be had."""
    missing = spec.source.missing()
    if missing is not None:
        if os.environ.get("CI"):
            pytest.fail(missing, pytrace=False)
        pytest.skip(missing)


class Pair:
    """Two brokers of ActiveMQ Classic with one store: the standby opens its ports when the active one has gone."""

    def __init__(self, folder: Path, opened: ExitStack) -> None:
        store = folder / "store"
        store.mkdir()

        def configure(site: Site) -> None:
            activemq.configure(site)
            text = (site.folder / "activemq.xml").read_text(encoding="utf-8")
            for old, new in (
                ('<kahaDB directory="${activemq.data}/kahadb"/>', _STORE.format(store=store)),
                (' anonymousAccessAllowed="true"', ""),
                (
                    "<transportConnectors>",
                    _TLS.format(keys=folder / "server.p12", secret=_SECRET) + "<transportConnectors>",
                ),
                ('uri="stomp://', 'uri="stomp+ssl://'),
                ('uri="amqp://', 'uri="amqp+ssl://'),
            ):
                assert text.count(old) == 1, old
                text = text.replace(old, new)
            site.write("activemq.xml", text)

        spec = replace(activemq.SPEC, configure=configure)
        self.active, self.standby = (opened.enter_context(closing(NativeBroker(spec))) for _ in range(2))
        self._pool = opened.enter_context(ThreadPoolExecutor(1))
        self.active.start()
        self._waits: Future[None] = self._pool.submit(self.standby.start)
        opened.callback(self.close)  # which ends that, before the pool waits for it

    def urls(self, scheme: str) -> list[str]:
        """Of the active one, and of the standby."""
        protocol = "stomp" if scheme.startswith("stomp") else "amqp"
        return [f"{scheme}://localhost:{each.ports[protocol]}" for each in (self.active, self.standby)]

    def failover(self, scheme: str) -> str:
        return f"failover:({','.join(self.urls(scheme))})"

    def fail_over(self) -> None:
        """kill -9 of the active one; returns when the standby has taken over. Once: then there is no standby."""
        self.active.kill()
        self._waits.result()
        self.active, self.standby = self.standby, self.active

    def close(self) -> None:
        """kill -9 of both, the standby first."""
        for each in (self.standby, self.active):
            each.kill()


def rabbitmq_with_tls(folder: Path) -> BrokerSpec:
    """RabbitMQ 4 with AMQP and its management over TLS."""

    def configure(site: Site) -> None:
        rabbitmq4.SPEC.configure(site)
        more = _RABBITMQ_TLS.format(folder=folder, host=site.host, **site.ports)
        with (site.folder / "rabbitmq.conf").open("a", encoding="utf-8") as file:
            file.write(more)

    ports = {**rabbitmq4.SPEC.ports, "amqps": 5671, "https": 443}
    return replace(rabbitmq4.SPEC, configure=configure, ports=ports)
