"""Lists of URLs that ActiveMQ writes into one URL: ``failover:(stomp://a,stomp://b?x=y)?option=value``."""

from __future__ import annotations

from itertools import accumulate

from redelivery.model.errors import ConfigError
from redelivery.policies.connection_url import url_head


def split_composite(url: str, prefix: str) -> tuple[list[str], str]:
    """The URLs of the list, each once, and the options of the whole: both still encoded.

    ``//`` may stand after the prefix. Without the parentheses there are no options of the whole: what is after the last
    URL's ``?`` is that URL's. Raises ConfigError: it has not this form, or the list is empty; the text shows no
    password.
    """
    if not isinstance(url, str):
        raise ConfigError(f"it must be a str, not a {type(url).__name__}")
    example = f"'{prefix}(stomp://a:61613,stomp://b:61613)'"
    if not url.lower().startswith(prefix):
        raise ConfigError(f"it begins with {prefix}, like {example}")
    if not url.isprintable() or " " in url:
        raise ConfigError("it has a space or a control character; leave it out, or percent-encode it")
    if "#" in url:
        raise ConfigError("a '#' must be written %23")
    text, query = _unwrapped(url[len(prefix) :].removeprefix("//"))
    components = _components(text)
    if not components:
        raise ConfigError(f"its list is empty: write URLs into it, like {example}")
    return components, query


def shown_list(text: str) -> str:
    """Such a list, balanced or not, with nothing of a URL that may be a part of a password."""
    return ",".join(url_head(piece.removeprefix("//").strip("()")) or "…" for piece in text.split(","))


def _unwrapped(text: str) -> tuple[str, str]:
    if not text.startswith("("):
        return text, ""
    depths = _depths(text)
    if 0 not in depths:
        raise _unbalanced(text)
    end = depths.index(0)
    rest = text[end + 1 :]
    if rest and not rest.startswith("?"):
        raise ConfigError(
            f"after the ')' that ends the list ({shown_list(text[1:end])}) there may only be '?' and options; "
            "within a URL a ')' is written %29"
        )
    return text[1:end], rest[1:]


def _components(text: str) -> list[str]:
    """List what is between the commas that are in no parentheses; a comma at the end adds nothing, as in Java."""
    depths = [0, *_depths(text)]
    if depths[-1] or min(depths) < 0:
        raise _unbalanced(text)
    commas = [place for place, character in enumerate(text) if character == "," and not depths[place]]
    starts, ends = [0, *(comma + 1 for comma in commas)], [*commas, len(text)]
    pieces = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    return list(dict.fromkeys(pieces if pieces[-1] else pieces[:-1]))


def _depths(text: str) -> list[int]:
    """Count the parentheses that are open after each character."""
    return list(accumulate((character == "(") - (character == ")") for character in text))


def _unbalanced(text: str) -> ConfigError:
    return ConfigError(
        f"its {text.count('(')} '(' and {text.count(')')} ')' do not match ({shown_list(text)}); "
        "within a URL they are written %28 and %29"
    )
