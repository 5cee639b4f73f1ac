"""The recipes of docs/guide/recipes.md do their work once, and send what belongs to a transaction at its commit."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.client.shell import eventually

import redelivery
from redelivery import RedeliveryPolicy, SharedDeadLetterStrategy
from redelivery.broker import EmbeddedBroker

EXAMPLES = Path(__file__).parents[2] / "examples" / "recipes"
SOON = 60.0
FAST = RedeliveryPolicy(initial_redelivery_delay=0.05, redelivery_delay=0.05)


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(f"recipes-{uuid4().hex}", stomp_port=0) as broker:
        monkeypatch.setenv("REDELIVERY_URL", broker.stomp_url)
        yield broker


def recipe(name: str) -> Any:
    """The example as a module of its own."""
    spec = importlib.util.spec_from_file_location(f"recipe_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where annotations of its classes are looked up
    spec.loader.exec_module(module)
    return module


@contextmanager
def consuming(broker: EmbeddedBroker, handler: Any, body_type: Any) -> Iterator[None]:
    options: dict[str, Any] = {"redelivery_policy": FAST, "dead_letter_strategy": SharedDeadLetterStrategy("dead")}
    with (
        redelivery.connect(broker.stomp_url, **options) as connection,
        connection.listener_container("orders", handler, body_type=body_type, concurrency=2),
    ):
        yield


def bodies(broker: EmbeddedBroker, queue: str) -> list[Any]:
    return [message.body for message in broker.messages(queue)]


def test_a_table_beside_the_data(broker: EmbeddedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE", str(tmp_path / "shop.db"))
    module = recipe("idempotent_sql")
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database, database:
        database.executescript(module.TABLES)
        database.execute("INSERT INTO stock VALUES ('chair', 10)")
    attempts: list[str] = []

    def handler(order: Any, session: redelivery.Session) -> None:
        module.reserve(order, session)
        attempts.append(order.id)
        if len(attempts) == 1:
            raise ConnectionError("after the database's commit")

    order = '{"id": "7", "article": "chair", "pieces": 2}'
    for body in (order, order, '{"id": "8", "article": "chair", "pieces": 1}'):
        broker.send("orders", body)
    with consuming(broker, handler, module.Order):
        eventually(lambda: broker.queue_depth("parcels") == 3 and broker.queue_depth("orders") == 0, SOON)
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database:
        assert database.execute("SELECT pieces FROM stock").fetchall() == [(7,)]
        noted = database.execute("SELECT consumer, message FROM processed ORDER BY 2").fetchall()
    assert noted == [("reserve", "7"), ("reserve", "8")]
    assert sorted(bodies(broker, "parcels")) == ["7", "7", "8"]


@pytest.fixture
def redis() -> Iterator[Any]:
    """A Redis without the keys of these tests: that of REDELIVERY_REDIS_URL, or else one in the process."""
    url = os.environ.get("REDELIVERY_REDIS_URL")
    client = pytest.importorskip("redis").Redis.from_url(url) if url else pytest.importorskip("fakeredis").FakeRedis()
    keys = ("confirm:7", "confirm:8", "k")
    client.delete(*keys)
    yield client
    client.delete(*keys)
    client.close()


def test_a_key_in_redis(broker: EmbeddedBroker, redis: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    module = recipe("idempotent_redis")
    module.redis = redis
    monkeypatch.setattr(module, "LEASE", 1)
    mails: list[str] = []

    def send_mail(order: Any) -> None:
        mails.append(order.id)
        if len(mails) == 1:
            raise ConnectionError("no mail server")

    monkeypatch.setattr(module, "send_mail", send_mail)
    order = '{"id": "7", "email": "ada@example.org"}'
    broker.send("orders", order)
    with consuming(broker, module.confirm, module.Order):
        eventually(lambda: mails == ["7", "7"] and broker.queue_depth("orders") == 0, SOON)  # failed, then done
        broker.send("orders", order)
        eventually(lambda: broker.queue_depth("orders") == 0, SOON)
        assert mails == ["7", "7"]
        module.redis.set("confirm:8", "a worker that died", ex=1)
        broker.send("orders", order.replace("7", "8"))
        eventually(lambda: mails == ["7", "7", "8"], SOON)  # when its lease is over
        eventually(lambda: broker.queue_depth("orders") == 0, SOON)
    assert (module.redis.get("confirm:7"), module.redis.get("confirm:8")) == (b"done", b"done")
    assert 0 < module.redis.ttl("confirm:7") <= module.KEPT
    assert bodies(broker, "dead") == []


def test_a_lease_that_is_over_is_anothers(redis: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDELIVERY_URL", "vm://nobody")
    module = recipe("idempotent_redis")
    module.redis = redis

    def work() -> None:
        with module.once("k"):
            module.redis.set("k", "another")
            raise ValueError("late")

    with pytest.raises(ValueError, match="late"):
        work()
    assert module.redis.get("k") == b"another"
    with pytest.raises(redelivery.Retry), module.once("k"):
        pass


def test_fastapi(broker: EmbeddedBroker) -> None:
    pytest.importorskip("fastapi")
    from fastapi.testclient import TestClient

    module = recipe("fastapi_shop")
    with TestClient(module.app) as client:
        assert client.get("/ready").json() == {"healthy": True, "reasons": []}
        assert client.post("/orders", json={"id": "seven"}).status_code == 422
        answer = client.post("/orders", json={"id": 7, "article": "chair"})
        assert (answer.status_code, answer.json()) == (202, {"accepted": 7})
        eventually(lambda: bodies(broker, "parcels") == ["parcel 7 with chair"], SOON)
        broker.close()
        eventually(lambda: client.get("/ready").status_code == 503, SOON)
        assert client.get("/ready").json()["reasons"]


@pytest.fixture
def project(broker: EmbeddedBroker, tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A copy of the Django project, and its environment."""
    pytest.importorskip("django")
    home = tmp_path / "project"
    shutil.copytree(EXAMPLES / "django_shop", home)
    environment = {**os.environ, "DATABASE": str(tmp_path / "shop.sqlite3"), "REDELIVERY_URL": broker.stomp_url}
    return home, environment


def manage(home: Path, environment: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, "manage.py", *arguments]
    done = subprocess.run(  # noqa: S603  # our own example
        command, cwd=home, env=environment, capture_output=True, text=True, timeout=SOON, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


REQUESTS = """
from django.core.management import call_command
call_command("migrate", run_syncdb=True, verbosity=0)
from django.test import Client
from shop.models import Order
client = Client(raise_request_exception=False)
print([client.post("/orders", {"article": article}).status_code for article in ("chair", "the moon", "table")])
print(list(Order.objects.values_list("article", flat=True)))
"""


def test_django(broker: EmbeddedBroker, project: tuple[Path, dict[str, str]]) -> None:
    home, environment = project
    printed = manage(home, environment, "shell", "--verbosity", "0", "-c", REQUESTS).splitlines()
    assert printed[-2:] == ["[201, 500, 201]", "['chair', 'table']"]
    sent = bodies(broker, "orders")
    assert len(sent) == 2  # and none of what was rolled back
    broker.send("orders", sent[0])  # a duplicate
    command = [sys.executable, "manage.py", "runlisteners"]
    with subprocess.Popen(command, cwd=home, env=environment) as process:  # noqa: S603  # our own example
        try:
            eventually(lambda: broker.queue_depth("parcels") == 3 and broker.queue_depth("orders") == 0, SOON)
            process.send_signal(signal.SIGTERM)
            assert process.wait(SOON) == 0
        finally:
            process.kill()
    with closing(sqlite3.connect(environment["DATABASE"])) as database:
        assert database.execute("SELECT packed FROM shop_order").fetchall() == [(1,), (1,)]
    assert bodies(broker, "shop.DLQ") == []
