"""Spans and numbers are what the published registry of OpenTelemetry's semantic conventions says (conventions/)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.semconv.schemas import Schemas
from tests.client.shell import eventually, receive
from tests.otel.collected import Collected

import redelivery
from redelivery import Message, RedeliveryPolicy
from redelivery.broker import EmbeddedBroker
from redelivery.transports.dialects.detect import _DIALECTS

FOLDER = Path(__file__).parent / "conventions"
VERSION = re.search(r"version (\S+),", (FOLDER / "README.md").read_text(encoding="utf-8"))[1]  # type: ignore[index]
GENERAL = {"error.type", "server.address", "server.port", "network.peer.address", "network.peer.port"}
OWN_SYSTEMS = {"hornetq", "qpid", "redelivery"}  # of which the registry knows nothing: a name of one's own is allowed


@cache
def published(file: str) -> dict[str, Any]:
    return yaml.safe_load((FOLDER / f"{file}.yaml").read_text(encoding="utf-8"))  # type: ignore[no-any-return]


@cache
def attributes() -> dict[str, dict[str, Any]]:
    """Those of messaging, by their names."""
    groups = published("registry")["groups"]
    return {each["id"]: each for group in groups for each in group["attributes"]}


def references(group: dict[str, Any], by_id: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The attributes of a group, of what it extends, and of the groups that it names: how much each is required."""
    parent = by_id.get(group.get("extends", ""), {})
    found = references(parent, by_id) if parent else {}
    for each in group.get("attributes", ()):
        if "ref_group" in each:
            found |= references(by_id[each["ref_group"]], by_id)
        else:
            found[each["ref"]] = each.get("requirement_level", found.get(each["ref"], "recommended"))
    return found


def members(name: str) -> set[str]:
    return {each["value"] for each in attributes()[name]["type"]["members"] if "deprecated" not in each}


@cache
def metrics() -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """By name: what is published of it, and of its attributes."""
    groups = [*published("common")["groups"], *published("metrics")["groups"]]
    by_id = {each["id"]: each for each in groups}
    return {each["metric_name"]: (each, references(each, by_id)) for each in groups if each["type"] == "metric"}


@cache
def spans() -> dict[tuple[str, str], dict[str, Any]]:
    """By the type of the operation and the kind of the span."""
    by_id = {each["id"]: each for each in published("spans")["attribute_groups"]}
    return {
        (each["type"].split(".")[1], each["kind"].upper()): references(each, by_id)
        for each in published("spans")["spans"]
    }


@pytest.fixture(scope="module")
def seen() -> Iterator[Collected]:
    """Everything that can be seen: sends, calls, a listener, a failing handler, settling, a subscription, a reply."""
    seen = Collected()

    def handler(message: Message) -> str:
        if message.delivery_count == 1:
            raise ValueError("no stock")
        return "done"

    fast = RedeliveryPolicy(initial_redelivery_delay=0.01, redelivery_delay=0.01)
    with (
        EmbeddedBroker("conventions", stomp_port=0) as broker,
        redelivery.connect(
            broker.stomp_url, observer=seen.observer, redelivery_policy=fast, client_id="till"
        ) as connection,
    ):
        for mode in ("auto", "client", "individual", "transacted"):
            with connection.session(mode) as session, session.consumer(mode) as consumer:
                session.producer(mode).send("two chairs", correlation_id="order-7")
                session.commit() if session.transacted else None
                message = receive(consumer)
                session.commit() if session.transacted else message.acknowledge()
        with connection.session("client") as session:
            news = session.durable_consumer("topic://news", "desk")
            session.producer("topic://news").send("rain")
            session.acknowledge() if receive(news) else None
            news.close()
        with connection.listener_container("work", handler), connection.publisher() as publisher:
            publisher.send("a chair", "work")
            eventually(lambda: "commit work" in seen.names)
        yield seen


def kind_of(span: ReadableSpan) -> tuple[str, str]:
    return str((span.attributes or {})["messaging.operation.type"]), span.kind.name


def test_the_schema_is_that_of_the_registry(seen: Collected) -> None:
    url = f"https://opentelemetry.io/schemas/{VERSION}"
    assert url in {each.value for each in Schemas} or VERSION not in {each.value.rpartition("/")[2] for each in Schemas}
    scopes = [each.instrumentation_scope for each in seen.spans if each.instrumentation_scope]
    assert {each.schema_url for each in scopes if each.name == "redelivery"} == {url}
    assert seen.schemas() == {url}


def test_every_operation_was_seen(seen: Collected) -> None:
    names = {str((each.attributes or {}).get("messaging.operation.name")) for each in seen.spans}
    assert names == {"send", "receive", "process", "commit", "rollback", "acknowledge"}
    assert {kind_of(each) for each in seen.spans} == {
        ("send", "PRODUCER"),
        ("receive", "CLIENT"),
        ("process", "CONSUMER"),
        ("settle", "CLIENT"),
    }


def test_spans_have_the_names_kinds_and_attributes_of_the_registry(seen: Collected) -> None:
    for span in seen.spans:
        found = dict(span.attributes or {})
        assert kind_of(span) in spans(), span.name
        known = spans()[kind_of(span)]
        required = {name for name, level in known.items() if level == "required"}
        assert required <= found.keys(), span.name
        own = {name for name in found if name.startswith("redelivery.")}
        # the name of a subscription is in the registry, for the systems to say what it means there
        assert found.keys() - own - {"messaging.destination.subscription.name"} <= known.keys(), span.name
        assert span.name == " ".join(
            str(found[name]) for name in ("messaging.operation.name", "messaging.destination.name") if name in found
        )
        check_values(found)


def check_values(found: dict[str, Any]) -> None:
    kinds = {"string": str, "int": int, "boolean": bool}
    for name, value in found.items():
        if name in GENERAL or name.startswith("redelivery."):
            continue
        kind = attributes()[name]["type"] if name in attributes() else "string"
        assert "deprecated" not in attributes().get(name, {}), name
        if isinstance(kind, str):
            assert isinstance(value, kinds[kind]), name
        elif name == "messaging.operation.type":
            assert value in members(name)
        else:
            assert value in members(name) | OWN_SYSTEMS


def test_numbers_have_the_names_units_kinds_and_attributes_of_the_registry(seen: Collected) -> None:
    found = {each.name: each for each in seen.metrics() if each.name.startswith("messaging.")}
    assert found.keys() == metrics().keys()
    for name, metric in found.items():
        says, known = metrics()[name]
        kind = {"Histogram": "histogram", "Sum": "counter"}[type(metric.data).__name__]
        assert (metric.unit, kind) == (says["unit"], says["instrument"]), name
        required = {each for each, level in known.items() if level == "required"}
        for point in metric.data.data_points:
            here = dict(point.attributes or {})
            assert required <= here.keys() <= known.keys(), name
            check_values(here)


def test_our_own_numbers_are_in_a_namespace_of_their_own(seen: Collected) -> None:
    assert {each.name.split(".")[0] for each in seen.metrics()} == {"messaging", "redelivery"}


def test_a_subscription_is_named(seen: Collected) -> None:
    name = "messaging.destination.subscription.name"
    assert name in attributes()
    named = {span.name for span in seen.spans if (span.attributes or {}).get(name) == "desk"}
    assert named == {"receive news", "acknowledge news"}
    for metric in ("messaging.client.consumed.messages", "messaging.client.operation.duration"):
        assert any(attributes.get(name) == "desk" for attributes, _ in seen.numbers(metric))
    assert not any(name in attributes for attributes, _ in seen.numbers("messaging.client.sent.messages"))


def test_a_broker_has_the_name_of_the_registry_or_one_that_it_lacks() -> None:
    systems = {each.system for each in _DIALECTS.values()}
    assert systems - members("messaging.system") == OWN_SYSTEMS
