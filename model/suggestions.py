"""The hint at the end of an error about an unknown name: what was probably meant."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, Final, TypeVar, cast, get_args, get_type_hints

_F = TypeVar("_F", bound=Callable[..., Any])

_CUTOFF: Final = 0.75  # below, what is found is rarely what was meant
_NOTHING: Final[Mapping[str, str]] = {}
_NO_DEFAULTS: Final[Mapping[str, object]] = {}
_SHOWN: Final = 60  # characters of a name that is refused
_SEPARATORS: Final = str.maketrans("", "", "_-. ")


def nearest(name: object, known: Iterable[str], synonyms: Mapping[str, str] = _NOTHING) -> str | None:
    """The known name that was probably meant by ``name``; None where none is near.

    Case, ``_``, ``-`` and ``.`` do not count. ``synonyms``: what others call it -> the known name, for words that do
    not resemble each other.
    """
    if not isinstance(name, str):
        return None
    names = {_plain(each): each for each in (*synonyms, *known)}
    found = get_close_matches(_plain(name), names, n=1, cutoff=_CUTOFF)
    if not found:
        return None
    meant = names[found[0]]
    return synonyms.get(meant, meant)


def did_you_mean(name: object, known: Iterable[str], synonyms: Mapping[str, str] = _NOTHING) -> str:
    """``; did you mean 'username'?``, to be appended to an error; empty where no known name is near."""
    found = nearest(name, known, synonyms)
    return "" if found is None else f"; did you mean {found!r}?"


def unknown_option(name: str, known: Iterable[str], synonyms: Mapping[str, str] = _NOTHING, *, of: str = "") -> str:
    """``unknown option 'user' of …; did you mean 'username'?``, or the known names where none is near."""
    known = tuple(known)
    where = f" of {of}" if of else ""
    hint = did_you_mean(name, known, synonyms) or "; known are " + ", ".join(known)
    return f"unknown option {repr(name)[:_SHOWN]}{where}{hint}"


def suggesting(
    synonyms: Mapping[str, str] = _NOTHING, defaults: Mapping[str, object] = _NO_DEFAULTS
) -> Callable[[_F], _F]:
    """Decorator: Python's TypeError for an unknown keyword also says which one was probably meant.

    Python 3.13 does so by itself for names that resemble each other, but knows no synonyms. Keywords that are written
    elsewhere (``**options: Unpack[Options]``) stand in the signature one by one, so that `help` shows them; with their
    ``defaults``, which are None where nothing is said.
    """

    def decorate(function: _F) -> _F:
        shown = _unpacked(function, defaults)
        known = frozenset(shown.parameters)
        most = sum(each.kind is not Parameter.KEYWORD_ONLY for each in shown.parameters.values())

        @wraps(function)
        def checked(*args: Any, **keywords: Any) -> Any:
            if keywords and not keywords.keys() <= known:
                name = next(each for each in keywords if each not in known)
                raise TypeError(
                    f"{_called(function, args)} got an unexpected keyword argument {name!r}"
                    + did_you_mean(name, sorted(known - {"self"}), synonyms)
                )
            if len(args) > most:
                raise TypeError(f"{_called(function, args)} {_too_many(shown, most, len(args))}")
            held: list[Any] = [keywords, args]
            del args, keywords  # there may be a password in them: see `redelivery.model.errors.unseen`
            return function(*held.pop(), **held.pop())

        checked.__signature__ = shown  # type: ignore[attr-defined]  # `inspect.signature` asks for it
        return cast(_F, checked)

    return decorate


def _called(function: Callable[..., Any], args: tuple[Any, ...]) -> str:
    """``Session.consumer()``: by the class of the object, which may have the method from a part of itself."""
    if not args or "." not in function.__qualname__.rpartition("<locals>.")[2]:
        return f"{function.__name__}()"
    owner = type(args[0]).__name__
    return f"{owner}()" if function.__name__ == "__init__" else f"{owner}.{function.__name__}()"


def _too_many(shown: Signature, most: int, given: int) -> str:
    """``takes 1 positional argument, not 2: write the others by name (selector=…, no_local=…, …)``."""
    own = "self" in shown.parameters  # which the caller does not count
    names = [name for name, each in shown.parameters.items() if each.kind is Parameter.KEYWORD_ONLY]
    listed = ", ".join(f"{name}=…" for name in names[:3]) + (", …" if len(names) > 3 else "")
    count = most - own
    hint = f": write the others by name ({listed})" if names else ""
    return f"takes {count} positional argument{'' if count == 1 else 's'}, not {given - own}{hint}"


def _unpacked(function: Callable[..., Any], defaults: Mapping[str, object]) -> Signature:
    """The signature with each key of ``**options: Unpack[Options]`` as a keyword; they may all be left out."""
    shown = signature(function)
    parameters = list(shown.parameters.values())
    if not parameters or parameters[-1].kind is not Parameter.VAR_KEYWORD:
        return shown
    last = parameters.pop()
    (keywords,) = get_args(get_type_hints(function)[last.name])
    hints = {name: getattr(hint, "__forward_arg__", hint) for name, hint in keywords.__annotations__.items()}
    written = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=defaults.get(name), annotation=hint)
        for name, hint in hints.items()
    ]
    return shown.replace(parameters=[*parameters, *written])


def _plain(name: str) -> str:
    return name.lower().translate(_SEPARATORS)
