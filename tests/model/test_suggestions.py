"""What an error about an unknown name suggests."""

from __future__ import annotations

import inspect
from typing import TypedDict, Unpack

import pytest

from redelivery.model.suggestions import nearest, suggesting, unknown_option

KNOWN = ("username", "password", "client_id", "connect_timeout")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("usernme", "username"),
        ("userName", "username"),
        ("clientId", "client_id"),
        ("client-id", "client_id"),
        ("user", "username"),  # a synonym
        ("User", "username"),
        ("zzz", None),
        ("", None),
        (None, None),
    ],
)
def test_the_nearest_name(given: object, meant: str | None) -> None:
    assert nearest(given, KNOWN, {"user": "username"}) == meant


def test_an_unknown_option_lists_the_known_only_where_none_is_near() -> None:
    assert unknown_option("usernme", KNOWN) == "unknown option 'usernme'; did you mean 'username'?"
    assert unknown_option("zzz", ("a", "b"), of="vm://x") == "unknown option 'zzz' of vm://x; known are a, b"
    assert len(unknown_option("z" * 1000, ("a", "b"))) < 200


def test_a_decorated_function_stays_what_it_is() -> None:
    @suggesting({"user": "username"})
    def connect(url: str, *, username: str = "") -> str:
        """Connect."""
        return url + username

    assert connect("a", username="b") == "ab"
    assert str(inspect.signature(connect)) == "(url: 'str', *, username: 'str' = '') -> 'str'"
    assert (connect.__name__, connect.__doc__) == ("connect", "Connect.")
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'user'; did you mean 'username'\?"):
        connect("a", user="b")  # type: ignore[call-arg]  # that is the test
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'zzz'$"):
        connect("a", zzz="b")  # type: ignore[call-arg]  # that is the test


class Options(TypedDict, total=False):
    username: str
    port: int | None


def test_keywords_that_are_written_elsewhere_are_known_and_shown() -> None:
    @suggesting({"user": "username"})
    def connect(url: str, **options: Unpack[Options]) -> str:
        return f"{url} {options.get('username')} {options.get('port')}"

    assert connect("h", username="me") == "h me None"
    assert list(inspect.signature(connect).parameters) == ["url", "username", "port"]
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'user'; did you mean 'username'\?"):
        connect("h", user="me")  # type: ignore[call-arg]  # that is the test


class Part:
    @suggesting()
    def consumer(self, destination: str, *, selector: str | None = None) -> str:
        return f"{destination} {selector}"


class Session(Part):
    @suggesting()
    def __init__(self, *, mode: int = 0) -> None:
        self.mode = mode


def test_what_is_given_by_place_and_must_be_by_name_is_shown_by_its_name() -> None:
    session = Session(mode=1)
    assert session.consumer("orders") == "orders None"
    with pytest.raises(TypeError) as raised:
        session.consumer("orders", "a = 1")  # type: ignore[call-arg]  # that is the test
    assert str(raised.value) == (
        "Session.consumer() takes 1 positional argument, not 2: write the others by name (selector=…)"
    )
    with pytest.raises(TypeError, match=r"^Session\(\) takes 0 positional arguments, not 1: .* \(mode=…\)$"):
        Session(1)  # type: ignore[call-arg]  # that is the test


def test_a_method_is_called_by_the_class_that_the_program_knows() -> None:
    with pytest.raises(TypeError, match=r"^Session\.consumer\(\) got an unexpected keyword argument 'select'; did you"):
        Session().consumer("orders", select="a = 1")  # type: ignore[call-arg]  # that is the test
    with pytest.raises(
        TypeError, match=r"^Session\(\) got an unexpected keyword argument 'modes'; did you mean 'mode'"
    ):
        Session(modes=1)  # type: ignore[call-arg]  # that is the test
