"""Expiry, delay, priority and groups of the embedded broker over STOMP, frame by frame as ActiveMQ Classic has them.

What differs on purpose is left out: Classic's id of a scheduled job, and the Java class before a cause.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from uuid import uuid4

import pytest
from tests.broker.raw_stomp import Raw

from redelivery.broker import EmbeddedBroker
from redelivery.testing.brokers.real import RealBroker

Taken = tuple[str, Mapping[str, str], bytes]
PAUSE = 0.25  # seconds


class Trial:
    """One client of a broker, and queues of its own."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._client = Raw(url)
        self._name = f"as-classic.{uuid4().hex}"

    def send(self, body: bytes, **headers: str) -> str:
        return self._client.call("SEND", body, **{"destination": f"/queue/{self._name}", **headers}).command

    def take(self, number: int, queue: str | None = None, patience: float = PAUSE * 2) -> list[Taken]:
        """So many messages, as far as they are there."""
        with Raw(self._url) as client:
            client.subscribe(f"/queue/{queue or self._name}", "auto")
            client.socket.settimeout(patience)
            found: list[Taken] = []
            try:
                while len(found) < number:
                    found.append(self._shown(client))
            except TimeoutError:
                return found
            return found

    def dead_letters(self) -> list[Taken]:
        return [each for each in self.take(100, "ActiveMQ.DLQ") if self._name in repr(each) or "/queue/*" in repr(each)]

    def hold(self) -> None:
        """Receive one, and go without an acknowledgement after a while."""
        with Raw(self._url) as client:
            client.subscribe(f"/queue/{self._name}")
            client.next()
            time.sleep(PAUSE)

    def close(self) -> None:
        self._client.drop()

    def _shown(self, client: Raw) -> Taken:
        frame = client.next()
        headers = {name: value.replace(self._name, "*") for name, value in frame.headers.items()}
        for name in ("message-id", "timestamp", "ack", "scheduledJobId"):
            headers.pop(name, None)
        for name, value in headers.items():
            headers[name] = re.sub(r"\d{10,}", "T", value).removeprefix("java.lang.Throwable: ")
        return frame.command, dict(sorted(headers.items())), frame.body


def ms(seconds: float) -> str:
    return str(int((time.time() + seconds) * 1000))


def expired_when_sent(trial: Trial) -> object:
    return trial.send(b"x", persistent="true", expires=ms(-1)), trial.take(1), trial.dead_letters()


def expired_while_it_waits(trial: Trial) -> object:
    sent = trial.send(b"x", persistent="true", expires=ms(PAUSE / 2)), trial.send(b"volatile", expires=ms(PAUSE / 2))
    time.sleep(PAUSE)
    return sent, trial.take(1), trial.dead_letters()


def expired_while_it_is_held(trial: Trial) -> object:
    sent = trial.send(b"x", persistent="true", expires=ms(PAUSE / 2))
    trial.hold()
    return sent, trial.take(1), trial.dead_letters()


def delayed(trial: Trial) -> object:
    sent = (
        trial.send(b"late", AMQ_SCHEDULED_DELAY="200"),
        trial.send(b"soon"),
        trial.send(b"0", AMQ_SCHEDULED_DELAY="0"),
    )
    found = trial.take(3, patience=2.0)
    return sent, sorted(found[:2], key=repr), found[2:]


def delayed_beyond_its_end(trial: Trial) -> tuple[str, list[Taken], list[Taken]]:
    sent = trial.send(b"x", persistent="true", AMQ_SCHEDULED_DELAY="300", expires=ms(0.25))
    return sent, trial.take(1, patience=2.0), trial.dead_letters()  # Classic's scheduler is slow


def of_any_priority(trial: Trial) -> object:
    return [trial.send(number.encode(), priority=number) for number in ("1", "9", "5", "12")], trial.take(4)


def of_groups(trial: Trial) -> object:
    sent = [trial.send(b"x", JMSXGroupID="g", JMSXGroupSeq=number) for number in ("1", "-1", "1")]
    return sent, trial.take(3)


@pytest.mark.long_form
@pytest.mark.parametrize(
    "play",
    [*(expired_when_sent, expired_while_it_waits, expired_while_it_is_held), *(delayed, of_any_priority, of_groups)],
)
def test_the_embedded_broker_answers_as_classic_does(
    redelivery_activemq: RealBroker, redelivery_broker: EmbeddedBroker, play: Callable[[Trial], object]
) -> None:
    seen = []
    for url in (redelivery_activemq.stomp_url, redelivery_broker.stomp_url):
        trial = Trial(url)
        seen.append(play(trial))
        trial.close()
    assert seen[1] == seen[0]


@pytest.mark.long_form
def test_only_classic_begins_the_time_to_live_when_the_delay_is_over(
    redelivery_activemq: RealBroker, redelivery_broker: EmbeddedBroker
) -> None:
    taken = {}
    for url in (redelivery_activemq.stomp_url, redelivery_broker.stomp_url):
        trial = Trial(url)
        _, found, letters = delayed_beyond_its_end(trial)
        trial.close()
        taken[url] = len(found), len(letters)
    assert list(taken.values()) == [(1, 0), (0, 1)]
