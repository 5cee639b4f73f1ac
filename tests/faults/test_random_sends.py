"""Transactions of asynchronous sends over lost connections, at random: what a commit has confirmed is there, once.

Every discard is recorded: a commit that raised, a future that failed, a transaction that was rolled back on purpose.
`REDELIVERY_RANDOM_SENDS` is the number of messages of each case, `REDELIVERY_RANDOM_SEED` makes one again:

    REDELIVERY_RANDOM_SENDS=50000 pytest tests/faults/test_random_sends.py -k amqp-artemis
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final
from uuid import uuid4

import pytest
from tests.run.gate import Gate

import redelivery
from redelivery import ConnectionLostError, InDoubtError, ReconnectPolicy, TransactionRolledBackError
from redelivery.broker import EmbeddedBroker
from redelivery.testing.brokers.real import RealBroker

NUMBER: Final = int(os.environ.get("REDELIVERY_RANDOM_SENDS", "600"))
SEED: Final = os.environ.get("REDELIVERY_RANDOM_SEED") or uuid4().hex
THREADS: Final = 4
QUICK: Final = ReconnectPolicy(initial_delay=0.01, maximum_delay=0.1)
PATIENCE: Final = 60.0  # seconds for one answer, or for the next message


@dataclass
class Account:
    """What became of each message; each thread has its own."""

    confirmed: list[str] = field(default_factory=list)
    doubted: list[str] = field(default_factory=list)
    discarded: dict[str, str] = field(default_factory=dict)  # and why

    @property
    def sent(self) -> int:
        return len(self.confirmed) + len(self.doubted) + len(self.discarded)


def transact(session: redelivery.Session, queue: str, name: str, rng: random.Random, account: Account) -> None:
    """One transaction."""
    producer = session.producer(queue)
    bodies = [f"{name}.{each}" for each in range(rng.choice((1, 2, 3, 8, 40)))]
    futures = []
    try:
        for body in bodies:
            if rng.random() < 0.8:
                futures.append(producer.send_async(body, persistent=True))
            else:
                producer.send(body)
            if rng.random() < 0.05:
                time.sleep(rng.random() * 0.05)
        if futures and rng.random() < 0.3:
            futures[-1].exception(PATIENCE)
        if rng.random() < 0.1:
            session.rollback()
            account.discarded |= dict.fromkeys(bodies, "rolled back")
            return
        session.commit()
    except InDoubtError:
        account.doubted += bodies
    except TransactionRolledBackError as error:
        account.discarded |= dict.fromkeys(bodies, str(error))
    except ConnectionLostError as error:  # by a send: the transaction is what it was
        session.rollback()
        account.discarded |= dict.fromkeys(bodies, str(error))
    else:
        account.confirmed += bodies


def run(url: str, queue: str, *, deduplicate: bool) -> list[Account]:
    """Threads that send until there are enough, while the gate before the broker is shut now and then."""
    scheme, _, address = url.rpartition("://")
    login, _, place = address.rpartition("@")
    host, _, port = place.partition(":")
    accounts = [Account() for _ in range(THREADS)]
    problems: list[BaseException] = []
    ended = threading.Event()

    def work(number: int, connection: redelivery.Connection) -> None:
        rng, account, at = random.Random(f"{SEED} {number}"), accounts[number], 0  # noqa: S311  # to be made again
        try:
            with connection.session("transacted") as session:
                while account.sent < NUMBER / THREADS:
                    at += 1
                    transact(session, queue, f"{number}.{at}", rng, account)
        except BaseException as error:  # noqa: BLE001  # raised again by the test's thread
            problems.append(error)

    def harm(gate: Gate) -> None:
        rng = random.Random(f"{SEED} harm")  # noqa: S311  # as above
        while not ended.wait(rng.choice((0.05, 0.2, 0.5, 1.0))):
            gate.shut(rng.choice((0.0, 0.01, 0.1)))

    with ExitStack() as opened:
        gate = opened.enter_context(Gate(host, int(port)))
        through = f"{scheme}://{login + '@' if login else ''}127.0.0.1:{gate.port}"
        connection = redelivery.connect(
            through,
            reconnect=QUICK,
            deduplicate_sends=deduplicate,
            request_timeout=PATIENCE,
            exception_listener=lambda _: None,
        )
        opened.enter_context(connection)
        threads = [threading.Thread(target=work, args=(each, connection)) for each in range(THREADS)]
        harming = threading.Thread(target=harm, args=(gate,))
        for thread in (*threads, harming):
            thread.start()
        for thread in threads:
            thread.join()
        ended.set()
        harming.join()
        time.sleep(0.2)  # the gate opens again
    if problems:
        raise problems[0]
    return accounts


def drained(url: str, queue: str) -> Counter[str]:
    """What the queue held."""
    found: Counter[str] = Counter()
    with redelivery.connect(url) as connection, connection.session("client") as session:
        consumer = session.consumer(queue)
        while (messages := consumer.receive_many(500, 2)) or (messages := consumer.receive_many(500, 2)):
            found.update(str(each.body) for each in messages)
            session.acknowledge()
    return found


def check(url: str, *, deduplicate: bool) -> None:
    queue = f"random.{uuid4().hex}"
    accounts = run(url, queue, deduplicate=deduplicate)
    found = drained(url, queue)
    confirmed = [each for account in accounts for each in account.confirmed]
    doubted = [each for account in accounts for each in account.doubted]
    discarded = {body: why for account in accounts for body, why in account.discarded.items()}
    said = f"seed {SEED}: {len(confirmed)} confirmed, {len(doubted)} in doubt, {len(discarded)} discarded"
    print(said)
    assert [each for each in confirmed if each not in found] == [], f"nowhere; {said}"
    assert [each for each in discarded if each in found] == [], f"discarded, and there; {said}"
    assert [each for each, times in found.items() if times > 1] == [], f"more than once; {said}"
    assert confirmed, said
    if deduplicate:
        assert doubted == [], said


@pytest.fixture
def embedded() -> Iterator[EmbeddedBroker]:
    pytest.importorskip("proton")
    with EmbeddedBroker(f"random-{uuid4().hex}", amqp_port=0) as broker:
        yield broker


def test_amqp_embedded(embedded: EmbeddedBroker) -> None:
    check(embedded.amqp_url, deduplicate=False)


@pytest.mark.long_form
@pytest.mark.parametrize("deduplicate", [False, True])
def test_amqp_artemis(artemis: RealBroker, deduplicate: bool) -> None:
    check(artemis.amqp_url, deduplicate=deduplicate)


@pytest.mark.long_form
def test_amqp_qpid(qpid: RealBroker) -> None:
    check(qpid.amqp_url, deduplicate=False)
