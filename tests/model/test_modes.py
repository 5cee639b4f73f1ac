"""Acknowledgement modes: JMS's numbers, names and aliases."""

from __future__ import annotations

from typing import Any

import pytest

from redelivery.model.errors import ConfigError
from redelivery.model.modes import AckMode


def test_numbers_are_jms_and_activemqs() -> None:
    assert {mode.name: mode.value for mode in AckMode} == {
        "TRANSACTED": 0,
        "AUTO": 1,
        "CLIENT": 2,
        "DUPS_OK": 3,
        "INDIVIDUAL": 4,
    }


def test_jms_long_names_are_aliases() -> None:
    aliases = {name: mode.name for name, mode in AckMode.__members__.items() if name != mode.name}
    assert aliases == {
        "SESSION_TRANSACTED": "TRANSACTED",
        "AUTO_ACKNOWLEDGE": "AUTO",
        "CLIENT_ACKNOWLEDGE": "CLIENT",
        "DUPS_OK_ACKNOWLEDGE": "DUPS_OK",
        "INDIVIDUAL_ACKNOWLEDGE": "INDIVIDUAL",
    }


@pytest.mark.parametrize(
    ("value", "mode"),
    [
        (AckMode.CLIENT, AckMode.CLIENT),
        (0, AckMode.TRANSACTED),
        (4, AckMode.INDIVIDUAL),
        ("transacted", AckMode.TRANSACTED),
        ("Client", AckMode.CLIENT),
        (" DUPS_OK ", AckMode.DUPS_OK),
        ("session_transacted", AckMode.TRANSACTED),
        ("CLIENT_ACKNOWLEDGE", AckMode.CLIENT),
    ],
)
def test_parse(value: AckMode | int | str, mode: AckMode) -> None:
    assert AckMode.parse(value) is mode


@pytest.mark.parametrize("value", [5, -1, True, False, 1.0, "", "auto ack", "1", None, b"AUTO"])
def test_what_is_no_mode_is_refused_with_the_names(value: Any) -> None:
    with pytest.raises(ConfigError, match="TRANSACTED, AUTO, CLIENT, DUPS_OK, INDIVIDUAL"):
        AckMode.parse(value)


@pytest.mark.parametrize(
    ("value", "meant"), [("transction", "TRANSACTED"), ("Auto-Acknowledge", "AUTO_ACKNOWLEDGE"), ("tx", "TRANSACTED")]
)
def test_an_unknown_mode_says_which_one_was_meant(value: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=f"did you mean '{meant}"):
        AckMode.parse(value)
