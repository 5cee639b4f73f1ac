"""``redelivery doctor``: what it prints, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.policies.readers.documents import address_settings, written
from tests.run.commands import CliRunner, Result

from redelivery.cli.app import app


def run(*arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(app, ["doctor", "--watch", "0", *arguments], env=environment)


def test_nothing_wrong_is_exit_code_0() -> None:
    result = run("--url", "vm://healthy")
    assert result.exit_code == 0
    assert "0 errors, 0 warnings" in result.output


def test_an_error_is_exit_code_1_and_says_what_why_and_what_to_do(tmp_path: Path) -> None:
    file = str(written(tmp_path, "broker.xml", address_settings(orders={})))
    result = run("--url", "vm://losing", "--config", file)
    assert result.exit_code == 1
    assert "error: queue://orders: a message is removed after 10 deliveries" in result.output
    assert "  why: messages that fail are lost" in result.output
    assert "  do:  set a dead-letter address" in result.output


def test_a_file_alone_is_checked_without_a_broker(tmp_path: Path) -> None:
    lost = str(written(tmp_path, "lost.xml", address_settings(orders={})))
    kept = str(written(tmp_path, "kept.xml", address_settings(**{"#": {"dead_letter_address": "DLQ"}})))
    result = run("--config", lost)
    assert result.exit_code == 1
    assert result.output.splitlines()[0] == f"{lost} (Artemis): 2 errors, 0 warnings"
    assert "error: queue://orders: a message is removed after 10 deliveries" in result.output
    assert result.output.splitlines()[-1] == "not checked: the broker itself: no URL was given"
    assert run("--config", kept).exit_code == 0
    client = "tcp://x:1?jms.redeliveryPolicy.maximumRedeliveries=6"
    said = json.loads(run("--config", kept, "--json", "--client", client).output)
    assert (said["broker"], said["config"], said["failed"]) == (None, f"{kept} (Artemis)", False)
    assert "multiplied" in [each["check"] for each in said["findings"]]
    assert "queue://mine: broker and client" in run("--config", kept, "--client", client, "--queue", "mine").output


def test_what_a_file_says_and_is_not_read_is_said_with_a_broker_and_without(tmp_path: Path) -> None:
    settings = {"dead_letter_address": "DLQ", "address_full_policy": "DROP"}
    file = str(written(tmp_path, "broker.xml", address_settings(**{"#": settings})))
    for arguments in (["--config", file], ["--config", file, "--url", "vm://not-read"]):
        assert run(*arguments).output.splitlines()[-1].startswith(f"not read: address-full-policy = DROP ({file}:3:")
        assert json.loads(run(*arguments, "--json").output)["not_read"][0]["name"] == "address-full-policy = DROP"


def test_a_file_alone_needs_no_management(tmp_path: Path) -> None:
    file = str(written(tmp_path, "kept.xml", address_settings(**{"#": {"dead_letter_address": "DLQ"}})))
    assert run("--config", file, REDELIVERY_MANAGEMENT="http://localhost:1").exit_code == 0
    assert "--user has no effect without --url" in run("--config", file, "--user", "x").stderr


def test_a_file_that_is_not_understood_is_an_error_with_its_place(tmp_path: Path) -> None:
    file = str(written(tmp_path, "broker.xml", address_settings(orders={"redelivery_delay": "soon"})))
    result = run("--url", "vm://problems", "--config", file)
    assert result.exit_code == 1
    assert f"error: {file}:3:" in result.output
    assert "redelivery-delay='soon'" in result.output


def test_placeholders_of_the_file_are_given_as_properties(tmp_path: Path) -> None:
    settings = {"max_delivery_attempts": "${tries}", "dead_letter_address": "DLQ"}
    file = str(written(tmp_path, "broker.xml", address_settings(orders=settings)))
    without = run("--url", "vm://placeholders", "--config", file)
    assert (without.exit_code, "the placeholder ${tries} has no value" in without.output) == (1, True)
    found = run("--url", "vm://placeholders", "--config", file, "--property", "tries=-1")
    assert "the placeholder" not in found.output
    assert "queue://orders: a message is redelivered without a limit" in found.output


def test_json_and_the_url_of_the_environment(tmp_path: Path) -> None:
    file = str(written(tmp_path, "broker.xml", address_settings(orders={})))
    result = run("--config", file, "--json", REDELIVERY_URL="vm://losing")
    said = json.loads(result.output)
    assert (result.exit_code, said["failed"], said["findings"][0]["check"]) == (1, True, "removed")


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ((), 2, "--url"),
        (("--url", "vm://x", "--queue", "a b"), 2, "has a space"),
        (("--config", "missing.xml"), 1, "cannot be read"),
        (("--url", "vm://x", "--property", "tries"), 2, "use NAME=VALUE"),
        (("--url", "nonsense"), 2, "redelivery doctor: "),
        (("--url", "vm://x", "--config", "missing.xml"), 1, "cannot be read"),
    ],
)
def test_exit_codes(arguments: tuple[str, ...], code: int, says: str) -> None:
    result = run(*arguments)
    assert result.exit_code == code
    assert says in result.stderr
