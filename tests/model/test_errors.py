"""The errors: JMS's names, and Python's families that they belong to as well."""

from __future__ import annotations

import pickle

import pytest

import redelivery
from redelivery.model import errors
from redelivery.model.errors import InDoubtError, JMSError
from redelivery.model.messages import Message
from redelivery.model.passport.failures import class_of


@pytest.mark.parametrize("name", errors.__all__)
def test_every_error_is_a_jms_error_and_says_what_it_means(name: str) -> None:
    kind = getattr(errors, name)
    assert issubclass(kind, JMSError)
    assert kind.__doc__
    assert str(kind("why")) == "why"


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("ConnectError", ConnectionError),
        ("ConnectionLostError", ConnectionError),
        ("ConfigError", ValueError),
        ("InvalidSelectorError", ValueError),
        ("InvalidDestinationError", ValueError),
        ("MessageFormatError", TypeError),
        ("RequestTimeoutError", TimeoutError),
    ],
)
def test_families(name: str, family: type[Exception]) -> None:
    with pytest.raises(family, match="why"):
        raise getattr(errors, name)("why")


def test_all_names_of_the_module_are_listed() -> None:
    kinds = [name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, JMSError)]
    assert sorted(kinds) == sorted(errors.__all__)


@pytest.mark.parametrize(
    "name",
    [
        each
        for each in redelivery.__all__
        if isinstance(found := getattr(redelivery, each), type) and issubclass(found, Exception)
    ],
)
def test_an_exception_is_called_as_it_is_imported(name: str) -> None:
    """In logs, tracebacks and dead letters, which name its class: nobody looks for a module of ours."""
    kind = getattr(redelivery, name)
    assert (kind.__module__, class_of(kind)) == ("redelivery", f"redelivery.{name}")
    assert pickle.loads(pickle.dumps(kind)) is kind  # noqa: S301 - our own bytes


def test_in_doubt_says_what_is_in_doubt() -> None:
    sent, received = Message("a"), Message("b")
    error = InDoubtError("no answer", transaction_id="tx1", sent=(sent,), received=(received,))
    assert (str(error), error.transaction_id, error.sent, error.received) == ("no answer", "tx1", (sent,), (received,))
    bare = InDoubtError("no answer")
    assert (bare.transaction_id, bare.sent, bare.received) == (None, (), ())


def test_errors_travel_between_processes() -> None:
    copy = pickle.loads(pickle.dumps(InDoubtError("no answer", transaction_id="tx1")))  # noqa: S301 - our own bytes
    assert (str(copy), copy.transaction_id) == ("no answer", "tx1")
