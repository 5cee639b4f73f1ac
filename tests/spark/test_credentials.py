"""Passwords and certificates that are files or in the environment: what is used, refused, and never shown."""

from __future__ import annotations

import pickle
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkFiles
from tests.examples.tls_front import make_certificates, tls_front
from tests.spark.place import QUEUE, Place
from tests.spark.streams import drained, readers

from redelivery import ConfigError
from redelivery.broker import EmbeddedBroker
from redelivery.spark.options.credentials import read_password, tls_context
from redelivery.spark.options.query import BrowseOptions, SinkOptions, SourceOptions
from redelivery.spark.read.driver import DriverStreamReader
from redelivery.spark.read.executor import ExecutorStreamReader
from redelivery.spark.read.inspect.browse import BrowseReader

PLANTED = "pl4nted-s3cret"


def options(**given: str) -> SourceOptions:
    base = {"url": "stomp+ssl://h", "destination": QUEUE, "walLocation": "/nowhere", "username": "u"}
    return SourceOptions.parse({**base, **given})


@pytest.mark.parametrize("content", [PLANTED, f"{PLANTED}\n", f"{PLANTED}\r\n"], ids=["alone", "line", "windows"])
def test_a_password_in_a_file_is_read_for_each_connection(tmp_path: Path, content: str) -> None:
    path = tmp_path / "password"
    path.write_bytes(content.encode())
    given = options(passwordFile=str(path))
    assert read_password(given) == PLANTED
    path.write_text("another")
    assert read_password(given) == "another"
    assert PLANTED.encode() not in pickle.dumps(given)


def test_a_password_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_THE_BROKER", PLANTED)
    given = options(passwordEnv="OF_THE_BROKER")
    assert read_password(given) == PLANTED
    assert PLANTED.encode() not in pickle.dumps(given)
    monkeypatch.delenv("OF_THE_BROKER")
    with pytest.raises(ConfigError, match=r"no such variable.*spark.executorEnv.OF_THE_BROKER"):
        read_password(given)


def test_a_file_that_spark_has_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret.txt").write_text(PLANTED)
    monkeypatch.setattr(SparkFiles, "_root_directory", str(tmp_path))
    assert read_password(options(passwordFile="secret.txt")) == PLANTED
    with pytest.raises(ConfigError, match=rf"passwordFile='other': there is no file {tmp_path}/other.*spark.files"):
        read_password(options(passwordFile="other"))


@pytest.mark.parametrize("content", [b"\xff" + PLANTED.encode(), PLANTED.encode() + b"\nmore", PLANTED.encode() * 9999])
def test_a_file_that_is_no_password_is_not_shown(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "password"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="not one line of UTF-8") as raised:
        read_password(options(passwordFile=str(path)))
    assert PLANTED not in str(raised.value)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"password": PLANTED, "passwordFile": "/f"}, "given by password and by passwordFile"),
        ({"passwordEnv": "E", "passwordFile": "/f"}, "given by passwordFile and by passwordEnv"),
        ({"passwordEnv": f"{PLANTED}!"}, r"passwordEnv \(not shown\) is not the name of an environment variable"),
        ({"passwordFile": " "}, "passwordFile=' ' is empty"),
        ({"tlsKey": "/k"}, "tlsKey has no effect without tlsCert"),
        ({"url": "stomp://h", "tlsCa": "/c"}, r"not encrypted: write stomp\+ssl://"),
        ({"url": "amqp://h", "tlsCert": "/c"}, "not encrypted: write amqps://"),
        ({"ssl.truststore.location": "/c"}, "use tlsCa"),
        ({"kafka.ssl.keystore.location": "/c"}, "use tlsCert"),
        ({"ssl.key.password": PLANTED}, "no pass phrase"),
        ({"secretScope": "s"}, r"dbutils.secrets.get"),
        ({"verifyHostname": "false"}, "always verified"),
    ],
)
def test_what_is_refused(given: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError, match=text) as raised:
        options(**given)
    assert PLANTED not in str(raised.value)
    assert PLANTED not in repr(raised.value.__cause__)


def test_a_password_needs_a_user() -> None:
    given = {"url": "stomp://h", "destination": QUEUE, "passwordEnv": "E"}
    for kind in (SinkOptions, BrowseOptions):
        with pytest.raises(ConfigError, match="passwordEnv is given without username"):
            kind.parse(given)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    make_certificates(folder)
    return folder


def test_certificates(certificates: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tls_context(options()) is None
    monkeypatch.setattr(SparkFiles, "_root_directory", str(certificates))
    made = tls_context(options(tlsCa="ca.pem", tlsCert="client.pem", tlsKey="client.key"))
    assert made is not None
    assert (made.verify_mode, made.check_hostname) == (ssl.CERT_REQUIRED, True)
    with pytest.raises(ConfigError, match=r"tlsCa=.*client.key' has no certificates"):
        tls_context(options(tlsCa="client.key"))
    with pytest.raises(ConfigError, match=r"tlsCert=.*client.pem', tlsKey=.*server.key': no certificate with its key"):
        tls_context(options(tlsCert="client.pem", tlsKey="server.key"))


@pytest.mark.parametrize("kind", [DriverStreamReader, ExecutorStreamReader], ids=["driver", "executor"])
def test_a_stream_and_a_browse_over_mtls_leave_no_secret(
    kind: Any, broker: EmbeddedBroker, tmp_path: Path, certificates: Path
) -> None:
    place = Place(broker, tmp_path / "wal", "stomp")
    place.send("a", "b", "c")
    secret = tmp_path / "password"
    secret.write_text(PLANTED)
    files = {f"tls{name}": str(certificates / file) for name, file in _FILES.items()}
    with tls_front(place.url, certificates) as port:
        url = f"stomp+ssl://localhost:{port}"
        given = {"url": url, "username": "u", "passwordFile": str(secret), **files}
        browse = BrowseReader(BrowseOptions.parse({"destination": QUEUE, **given}))
        assert sum(batch.num_rows for batch in browse.read(browse.partitions()[0])) == 3
        receiver = "driver" if kind is DriverStreamReader else "executor"
        with readers(kind, place, receiver=receiver, **given) as make:
            reader = make()
            found, end = drained(reader, reader.initialOffset())
            assert sorted(found) == ["a", "b", "c"]
            said = [repr(reader.options), repr(end), repr(reader.reportLatestOffset())]
            said += [path.read_bytes().decode("latin-1") for path in _files(tmp_path / "wal")]
            assert not [each for each in said if PLANTED in each]


_FILES = {"Ca": "ca.pem", "Cert": "client.pem", "Key": "client.key"}


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())
