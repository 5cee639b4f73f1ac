"""Qpid's old Java broker: config.xml and virtualhosts.xml; the nearest of three levels counts."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.policies.readers.documents import read, written

import redelivery
from redelivery.policies.files.places import ConfigFileError

CONFIG = """\
<broker>
  <connector><port>5672</port></connector>
  <deadLetterQueues>true</deadLetterQueues>
  <maximumDeliveryCount>5</maximumDeliveryCount>
  <virtualhosts>${conf}/virtualhosts.xml</virtualhosts>
</broker>
"""
HOSTS = """\
<virtualhosts>
  <default>localhost</default>
  <virtualhost>
    <name>dev-only</name>
    <dev-only>
      <store><class>x</class></store>
      <queues>
        <deadLetterQueues>false</deadLetterQueues>
        <maximumDeliveryCount>0</maximumDeliveryCount>
        <queue>
          <name>dev-only-main-queue</name>
          <dev-only-main-queue>
            <deadLetterQueues>true</deadLetterQueues>
            <maximumDeliveryCount>3</maximumDeliveryCount>
          </dev-only-main-queue>
        </queue>
        <queue><name>dev-only-other-queue</name></queue>
      </queues>
    </dev-only>
  </virtualhost>
  <virtualhost>
    <name>localhost</name>
    <localhost><queues><queue><name>localhost-queue</name></queue></queues></localhost>
  </virtualhost>
</virtualhosts>
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    written(tmp_path, "virtualhosts.xml", HOSTS)
    return written(tmp_path, "config.xml", CONFIG)


@pytest.mark.promise("qpid-maximum", "qpid-names", "qpid-levels")
@pytest.mark.parametrize(
    ("queue", "maximum", "dead_letters"),
    [
        ("dev-only-main-queue", 3, "dev-only-main-queue_DLQ"),
        ("dev-only-other-queue", None, None),
        ("localhost-queue", 5, "localhost-queue_DLQ"),
        ("localhost/unknown", 5, "unknown_DLQ"),
        ("dev-only/unknown", None, None),
    ],
)
def test_the_nearest_of_queue_virtual_host_and_broker_counts(
    config: Path, queue: str, maximum: int | None, dead_letters: str | None
) -> None:
    found = redelivery.policies.read(config).explain(queue)
    assert (found.maximum, found.dead_letter) == (maximum, dead_letters)


def test_each_setting_is_named_with_its_file_and_line(config: Path) -> None:
    said = str(redelivery.policies.read(config).explain("localhost-queue"))
    assert f"maximumDeliveryCount = 5, from broker ({config}:4:3)" in said
    assert "5 failures over 0 s, then localhost-queue_DLQ" in said


def test_a_message_is_given_up_when_the_count_has_reached_the_maximum(config: Path) -> None:
    policy = redelivery.policies.read(config).redelivery_policies.policy_for("dev-only-main-queue")
    assert [policy.exceeded(n) for n in (0, 1, 2, 3)] == [False, False, False, True]


def test_without_a_dead_letter_queue_it_is_discarded(config: Path) -> None:
    found = redelivery.policies.read(config)
    assert (
        found.dead_letter_strategies.strategy_for("dev-only-other-queue") == redelivery.DiscardingDeadLetterStrategy()
    )
    text = CONFIG.replace("true", "false")
    assert read(text).explain("x").fate == "removed (dead-letter queues are off)"


def test_suffixes_can_be_set() -> None:
    text = CONFIG.replace("<connector>", "<deadLetterQueueSuffix>.dead</deadLetterQueueSuffix><connector>")
    assert read(text).explain("x").dead_letter == "x.dead"
    assert read(text).rules.exchange_suffix == "_DLE"  # type: ignore[attr-defined]  # QpidRules


def test_virtual_hosts_may_be_in_the_file_of_the_broker_or_alone() -> None:
    inside = CONFIG.replace("<virtualhosts>${conf}/virtualhosts.xml</virtualhosts>", HOSTS)
    assert read(inside).explain("localhost-queue").maximum == 5
    assert read(HOSTS).explain("localhost-queue").maximum is None
    assert read(HOSTS).explain("dev-only-main-queue").maximum == 3


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (CONFIG.replace(">5<", ">five<"), "file.xml:4:3: maximumDeliveryCount='five' must be an integer"),
        (CONFIG.replace(">5<", ">-1<"), "maximumDeliveryCount=-1 must be an integer from 0"),
        (CONFIG.replace("deadLetterQueues", "deadLeterQueues"), "file.xml:3:3: unknown option"),
        (HOSTS.replace("<name>localhost</name>", ""), "a virtualhost without a name"),
        (HOSTS.replace("<queue><name>dev-only-other-queue</name></queue>", "<queue/>"), "a queue without a name"),
    ],
)
def test_what_is_not_understood_is_refused(text: str, says: str) -> None:
    with pytest.raises(ConfigFileError, match=says):
        read(text)


def test_a_file_of_virtual_hosts_that_is_missing_or_elsewhere_is_an_error(tmp_path: Path) -> None:
    path = written(tmp_path, "config.xml", CONFIG)
    with pytest.raises(ConfigFileError, match=r"virtualhosts\.xml: cannot be read"):
        redelivery.policies.read(path)
    path = written(tmp_path, "config.xml", CONFIG.replace("${conf}", ".."))
    with pytest.raises(ConfigFileError, match="only files below"):
        redelivery.policies.read(path)


def test_a_file_of_virtual_hosts_below_qpid_s_home_is_found_next_to_the_other_one(tmp_path: Path) -> None:
    written(tmp_path, "virtualhosts.xml", HOSTS)
    path = written(tmp_path, "config.xml", CONFIG.replace("${conf}", "${QPID_HOME}/etc"))
    assert redelivery.policies.read(path).explain("localhost-queue").maximum == 5


def test_a_level_that_the_file_does_not_have_is_named_without_a_place() -> None:
    assert read(HOSTS).explain("localhost-queue").matched[-1].title == "broker"
    assert str(read(HOSTS).explain("localhost-queue").matched[-1]) == "broker"
