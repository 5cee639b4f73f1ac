"""Durations as callers give them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from redelivery.client.arguments import optional_seconds, seconds
from redelivery.model.errors import ConfigError


@pytest.mark.parametrize(
    ("given", "meant"), [(0, 0.0), (2, 2.0), (0.25, 0.25), (timedelta(milliseconds=1500), 1.5), (timedelta(0), 0.0)]
)
def test_seconds_or_a_timedelta(given: float | timedelta, meant: float) -> None:
    assert seconds("timeout", given) == meant


@pytest.mark.parametrize(
    "given",
    [
        -1,
        -0.001,
        timedelta(seconds=-1),
        float("nan"),
        float("inf"),
        True,
        "1",
        None,
        [1],
        pytest.param(10**400, id="huge"),
    ],
)
def test_anything_else_is_an_error_that_names_the_argument(given: Any) -> None:
    with pytest.raises(ConfigError, match="timeout="):
        seconds("timeout", given)


def test_none_means_without_end_where_that_is_possible() -> None:
    assert optional_seconds("timeout", None) is None
    assert optional_seconds("timeout", 3) == 3.0
    with pytest.raises(ValueError, match="patience=-3"):
        optional_seconds("patience", -3)
