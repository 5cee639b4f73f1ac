"""``redelivery policy``: what it prints, as text and as JSON, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.policies.readers.documents import address_settings, written
from tests.run.commands import CliRunner, Result

from redelivery.cli.app import app

SETTINGS = {"orders": {"redelivery_delay": 1000, "max_delivery_attempts": 3, "dead_letter_address": "DLQ"}}


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(written(tmp_path, "broker.xml", address_settings(**SETTINGS)))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["policy", *arguments])


def test_explain(file: str) -> None:
    result = run("explain", file, "orders")
    assert result.exit_code == 0
    assert "3 deliveries over 2 s, then DLQ" in result.output
    assert "broker.xml:3:" in result.output
    said = json.loads(run("explain", file, "orders", "--json").output)
    assert (said["maximum"], said["dead_letter"], said["delays"][0]["seconds"]) == (3, "DLQ", 1.0)


def test_simulate_with_a_client(file: str) -> None:
    url = "tcp://x:1?jms.redeliveryPolicy.maximumRedeliveries=6"
    assert "warning: up to 3 x 7 = 21 attempts" in run("simulate", file, "orders", "--client", url).output
    said = json.loads(run("simulate", file, "orders", "--client", url, "--json").output)
    assert (said["total"], said["most_attempts"], said["wins"], len(said["attempts"])) == (7, 21, "client", 7)


@pytest.mark.together("matplotlib")
def test_plot_on_the_terminal_and_to_a_file(file: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert "then DLQ" in run("plot", file, "orders").output
    assert run("plot", file, "orders", "--output", str(tmp_path / "x.svg")).exit_code == 0
    assert (tmp_path / "x.svg").exists()
    assert run("plot", file, "orders", "--output", str(tmp_path / "x.gif")).exit_code == 2
    drawn = run("plot", file, "orders", "--json", "--output", str(tmp_path / "y.svg")).output
    assert json.loads(drawn) == json.loads(run("simulate", file, "orders", "--json").output)
    assert (tmp_path / "y.svg").exists()


def test_diff(file: str, tmp_path: Path) -> None:
    changed = {"orders": {**SETTINGS["orders"], "max_delivery_attempts": 5}}
    other = str(written(tmp_path, "other.xml", address_settings(**changed)))
    assert "max-delivery-attempts: 3 -> 5" in run("diff", file, other).output
    assert json.loads(run("diff", file, other, "--json").output)[0]["destination"] == "orders"
    assert run("diff", file, file).output == "no destination is treated differently\n"


def test_the_exit_code_of_diff_is_that_of_git(file: str, tmp_path: Path) -> None:
    changed = {"orders": {**SETTINGS["orders"], "max_delivery_attempts": 5}}
    other = str(written(tmp_path, "other.xml", address_settings(**changed)))
    for options in ([], ["--json"]):
        assert [run("diff", file, each, "--exit-code", *options).exit_code for each in (file, other)] == [0, 1]
    assert run("diff", file, str(tmp_path / "missing.xml"), "--exit-code").exit_code == 2
    assert run("diff", file, str(tmp_path / "missing.xml")).exit_code == 1
    assert run("diff", file, "--exit-code").exit_code == 2
    assert run("diff", file, other).exit_code == 0


def test_table(file: str) -> None:
    assert "orders        3 deliveries   2 s   DLQ" in run("table", file).output
    assert "| orders | 3 deliveries | 2 s | DLQ | removed |" in run("table", file, "--markdown").output
    rows = json.loads(run("table", file, "--json").output)["rows"]
    assert [each["destination"] for each in rows] == ["orders", "(all others)"]
    assert run("table", file, "--json", "--markdown").exit_code == 2
    assert run("table", "missing.xml").exit_code == 1


@pytest.mark.parametrize("command", ["explain", "simulate", "plot"])
def test_an_address_is_asked_for_by_its_very_name(command: str, tmp_path: Path) -> None:
    file = str(written(tmp_path, "broker.xml", address_settings(**{"jms.queue.a": SETTINGS["orders"]})))
    assert "address:jms.queue.a (Artemis)" in run(command, file, "address:jms.queue.a").output
    assert (
        json.loads(run(command, file, "address:jms.queue.a", "--json").output)["destination"] == "address:jms.queue.a"
    )


def test_convert_says_what_is_lost_on_the_standard_error(file: str) -> None:
    result = run("convert", file, "--to", "broker_j")
    assert result.exit_code == 0
    assert "lost: orders: the delays are lost" in result.stderr
    assert "lost:" not in result.stdout
    said = json.loads(run("convert", file, "--to", "python", "--json").output)
    assert "RedeliveryPolicyMap" in said["text"]


def test_placeholders_are_given_as_properties(tmp_path: Path) -> None:
    file = str(written(tmp_path, "broker.xml", address_settings(x={"max_delivery_attempts": "${tries}"})))
    assert "pass properties" in run("explain", file, "x").stderr
    assert "4 deliveries" in run("explain", file, "x", "--property", "tries=4").output


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("explain", "FILE", "a b"), 2, "has a space"),
        (("convert", "FILE", "--to", "yaml"), 2, "yaml"),
        (("explain", "FILE"), 2, "Missing argument"),
        (("explain", "FILE", "x", "--property", "tries"), 2, "use NAME=VALUE"),
        (("explain", "", "x"), 1, "path of the configuration file is empty"),
        (("explain", "https://host/etc/broker.xml", "x"), 1, "pass its path"),
        (("explain", "missing.xml", "x"), 1, "missing.xml: cannot be read: No such file"),
        (("simulate", "FILE", "x", "--client", "tcp://x:1?jms.redeliveryPolicy.x=1"), 1, "unknown option"),
    ],
)
def test_exit_codes(file: str, arguments: tuple[str, ...], code: int, says: str) -> None:
    result = run(*(file if each == "FILE" else each for each in arguments))
    assert result.exit_code == code
    assert says in result.stderr


def test_every_problem_of_a_file_is_a_line(tmp_path: Path) -> None:
    file = str(written(tmp_path, "broker.xml", address_settings(x={"redelivery_delay": "a", "expiry_delay": "b"})))
    result = run("explain", file, "x")
    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 2


@pytest.mark.parametrize(("columns", "widest"), [(60, 40), (80, 60), (200, 120)])
def test_a_drawing_has_the_width_of_the_terminal(
    file: str, monkeypatch: pytest.MonkeyPatch, columns: int, widest: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert {len(line.split("|")[1]) for line in run("plot", file, "orders").output.splitlines() if "|" in line} == {
        widest
    }


def test_a_conversion_to_a_url_ends_its_line() -> None:
    assert run("convert", "tcp://a:1", "--to", "uri").stdout == "tcp://localhost:61616\n"
