"""Artemis' and HornetQ's address settings: the examples of their documents, merging, and explanations."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redelivery.model.errors import ConfigError
from redelivery.policies.destinations.address_settings import AddressSettings, AddressSettingsMap


class Signs:
    """Plays (sign, u) pairs to a delay."""

    def __init__(self, *pairs: tuple[str, float]) -> None:
        self.numbers: Iterator[float] = iter([each for sign, u in pairs for each in (0.9 if sign == "+" else 0.1, u)])

    def random(self) -> float:
        return next(self.numbers)


@pytest.mark.promise("artemis-redelivery-defaults", "artemis-auto-create")
def test_defaults_are_artemis() -> None:
    settings = AddressSettings()
    assert (
        settings.redelivery_delay,
        settings.redelivery_delay_multiplier,
        settings.redelivery_collision_avoidance_factor,
        settings.max_redelivery_delay,
        settings.max_delivery_attempts,
        settings.dead_letter_address,
        settings.expiry_address,
        settings.auto_create_dead_letter_resources,
        settings.dead_letter_queue_prefix,
        settings.dead_letter_queue_suffix,
    ) == (0.0, 1.0, 0.0, None, 10, None, None, False, "DLQ.", "")
    assert settings.fields_set == frozenset()
    assert settings.delay(1) == 0.0


@pytest.mark.promise("artemis-growth", "artemis-example-1", "hornetq-example-growth", "seen-artemis-delays")
def test_first_example_of_the_artemis_manual() -> None:
    settings = AddressSettings(redelivery_delay=5, redelivery_delay_multiplier=2, max_redelivery_delay=15)
    assert [settings.delay(n) for n in (1, 2, 3, 4)] == [5.0, 10.0, 15.0, 15.0]


@pytest.mark.promise("artemis-example-2")
def test_second_example_of_the_artemis_manual() -> None:
    settings = AddressSettings(redelivery_delay=1, max_redelivery_delay=15, redelivery_collision_avoidance_factor=0.5)
    rng = Signs(("-", 0.25), ("+", 0.75), ("-", 0.05))
    assert [settings.delay(n, rng) for n in (1, 2, 3)] == [0.875, 1.375, 0.975]


@pytest.mark.promise("hornetq-example-setting")
def test_hornetqs_example() -> None:
    settings = AddressSettings(redelivery_delay=5, redelivery_delay_multiplier=1.5, max_redelivery_delay=50)
    assert [settings.delay(n) for n in range(1, 9)] == [5.0, 7.5, 11.25, 16.875, 25.312, 37.968, 50.0, 50.0]


@pytest.mark.promise("artemis-redelivery-defaults", "seen-artemis-maximum")
def test_the_cap_defaults_to_ten_delays() -> None:
    settings = AddressSettings(redelivery_delay=timedelta(seconds=2), redelivery_delay_multiplier=4)
    assert settings.longest_delay == 20.0
    assert [settings.delay(n) for n in (1, 2, 3)] == [2.0, 8.0, 20.0]


def test_the_cap_comes_after_the_jitter() -> None:
    settings = AddressSettings(redelivery_delay=10, max_redelivery_delay=10, redelivery_collision_avoidance_factor=1.0)
    assert settings.delay(1, Signs(("+", 0.9))) == 10.0
    assert settings.delay(1, Signs(("-", 0.9))) == 1.0


@given(
    st.integers(0, 10**6), st.floats(0, 1e6), st.floats(0, 1), st.none() | st.integers(0, 10**6), st.integers(1, 10**6)
)
def test_delays_stay_between_zero_and_the_cap(
    delay: int, multiplier: float, factor: float, cap: int | None, count: int
) -> None:
    settings = AddressSettings(
        redelivery_delay=delay / 1000,
        redelivery_delay_multiplier=multiplier,
        redelivery_collision_avoidance_factor=factor,
        max_redelivery_delay=None if cap is None else cap / 1000,
    )
    assert 0 <= settings.delay(count) <= (delay / 100 if cap is None else cap / 1000)


@pytest.mark.promise("artemis-attempts-default", "seen-artemis-total")
def test_attempts_count_all_deliveries() -> None:
    assert [AddressSettings(max_delivery_attempts=3).exceeded(n) for n in (1, 2, 3, 4)] == [False, False, True, True]
    assert not any(AddressSettings(max_delivery_attempts=each).exceeded(10**9) for each in (0, -1))
    assert AddressSettings().exceeded(10)
    assert not AddressSettings().exceeded(9)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("redelivery_delay", -1),
        ("redelivery_delay", True),
        ("redelivery_delay", "5"),
        ("redelivery_delay_multiplier", float("nan")),
        ("redelivery_delay_multiplier", -1.0),
        ("redelivery_collision_avoidance_factor", 1.01),
        ("redelivery_collision_avoidance_factor", -0.1),
        ("max_redelivery_delay", -1),
        ("max_delivery_attempts", -2),
        ("max_delivery_attempts", 1.5),
        ("max_delivery_attempts", False),
        ("dead_letter_address", ""),
        ("dead_letter_address", 7),
        ("auto_create_dead_letter_resources", 1),
        ("dead_letter_queue_prefix", 3),
    ],
)
def test_a_bad_value_is_named(name: str, value: object) -> None:
    arguments: dict[str, Any] = {name: value}
    with pytest.raises(ConfigError, match=f"^{name}="):
        AddressSettings(**arguments)


@pytest.mark.promise("artemis-endless-address", "seen-artemis-merge")
def test_settings_merge_field_by_field() -> None:
    settings = AddressSettingsMap(
        {
            "#": AddressSettings(dead_letter_address="DLA", max_delivery_attempts=3, redelivery_delay=1),
            "orders.*": AddressSettings(redelivery_delay=5, redelivery_delay_multiplier=2),
            "orders.new": AddressSettings(max_delivery_attempts=-1),
        }
    )
    merged = settings.settings_for("orders.new")
    assert merged == AddressSettings(
        dead_letter_address="DLA", max_delivery_attempts=-1, redelivery_delay=5, redelivery_delay_multiplier=2
    )
    assert settings.settings_for("other").redelivery_delay == 1.0
    assert settings.settings_for("orders.old").max_delivery_attempts == 3


def test_an_explicit_default_overrides_a_less_specific_entry() -> None:
    settings = AddressSettingsMap(
        {
            "#": AddressSettings(max_delivery_attempts=3, redelivery_delay=5),
            "a": AddressSettings(max_delivery_attempts=10),
        }
    )
    assert settings.settings_for("a").max_delivery_attempts == 10
    assert settings.settings_for("a").redelivery_delay == 5.0


def test_the_default_cap_follows_the_merged_delay() -> None:
    settings = AddressSettingsMap(
        {"#": AddressSettings(redelivery_delay_multiplier=100), "a": AddressSettings(redelivery_delay=2)}
    )
    assert settings.settings_for("a").delay(9) == 20.0


def test_nothing_matches_gives_the_defaults() -> None:
    settings = AddressSettingsMap({"a": AddressSettings(max_delivery_attempts=3)})
    assert settings.settings_for("b") == AddressSettings()
    assert "nothing" in str(settings.explain("b"))
    assert settings.explain("b").winner.value == AddressSettings()


def test_explain_says_where_each_field_comes_from() -> None:
    settings = AddressSettingsMap(
        {
            "#": AddressSettings(dead_letter_address="DLA", max_delivery_attempts=3),
            "queue://orders.*": AddressSettings(max_delivery_attempts=7),
        }
    )
    why = settings.explain("orders.new")
    assert [entry.pattern for entry in why.candidates] == ["queue://orders.*", "#"]
    assert why.winner.pattern == "queue://orders.*"
    assert why.origins == {"dead_letter_address": "#", "max_delivery_attempts": "queue://orders.*"}
    text = str(why)
    assert "queue://orders.new: asked in this order: queue://orders.*, #" in text
    assert "max_delivery_attempts = 7, from queue://orders.*" in text
    assert "dead_letter_address = 'DLA', from #" in text
    assert "its word 1 is a literal" in text


def test_replace_keeps_what_was_set() -> None:
    base = AddressSettings(max_delivery_attempts=10)
    assert dataclasses.replace(base, redelivery_delay=3).fields_set == {"max_delivery_attempts", "redelivery_delay"}
    assert base.fields_set == {"max_delivery_attempts"}


def test_what_are_no_settings_is_refused() -> None:
    wrong: Any = {"a": {"max_delivery_attempts": 3}}
    with pytest.raises(ConfigError, match="'a'"):
        AddressSettingsMap(wrong)
    assert repr(AddressSettingsMap({"a,b": AddressSettings()})) == "<AddressSettingsMap 'a,b'>"
