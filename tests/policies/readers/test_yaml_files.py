"""YAML as Kubernetes reads it: values with their places, scalars as Go resolves them; nothing runs, nothing grows."""

from __future__ import annotations

import builtins
import time
from typing import Any

import pytest

import redelivery
from redelivery.policies.brokers.formats import read_content
from redelivery.policies.files import yaml_tree
from redelivery.policies.files.json_tree import Json
from redelivery.policies.files.places import ConfigFileError
from redelivery.policies.files.yaml_text import quoted
from redelivery.policies.files.yaml_tree import parse_yaml


def plain(value: Json) -> Any:
    if isinstance(value.value, dict):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value.value, list) else value.value


def parsed(text: str) -> Any:
    return plain(parse_yaml(text.encode(), "file.yaml"))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("010", 8), ("0o17", 15), ("0x1F", 31), ("0b11", 3), ("-0b11", -3), ("1_000", 1000), ("08", 8), ("+5", 5)),
        *(("1e3", 1000), ("1e+3", 1000), ("1.5", 1.5), (".5", 0.5), ("5.", 5), ("2.0", 2), ("1e400", "1e400")),
        *(("on", True), ("y", True), ("Yes", True), ("off", False), ("N", False), ("TRUE", True), ("tRUE", "tRUE")),
        *(("~", None), ("", None), ("Null", None), ("1:30", "1:30"), ("2001-01-01", "2001-01-01"), ("-", [None])),
        *(("'010'", "010"), ('"on"', "on"), ("!!str 010", "010"), ("!!int '5'", 5), ("!!bool yes", True)),
        ("9" * 30, int("9" * 30)),
    ],
)
def test_a_scalar_is_what_kubernetes_takes_it_for(text: str, value: object) -> None:
    found = parsed(f"a: {text}" if text != "-" else "a:\n-")[0]["a"]
    assert (found, type(found)) == (value, type(value))


def test_anchors_and_merge_keys_give_values_and_keep_their_own_places() -> None:
    root = parse_yaml(b"base: &b {x: 1, z: 2}\none:\n  <<: *b\n  z: 3\n---\n---\n- second\n", "f.yaml")
    assert plain(root) == [{"base": {"x": 1, "z": 2}, "one": {"x": 1, "z": 3}}, ["second"]]
    assert [str(root.value[0].value["one"].value[name].place) for name in "xz"] == ["f.yaml:1:14", "f.yaml:4:6"]
    assert parsed("a: &a {x: 1}\nb: &b {x: 2, z: 3}\nc: {<<: [*a, *b]}")[0]["c"] == {"x": 1, "z": 3}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: 1\nb: 2\na: 3", r"file\.yaml:3:1: the key 'a' twice in one mapping \(the first: file\.yaml:1:4\)"),
        ("a: !!python/object/apply:os.system [x]", r":1:4: the tag 'tag:yaml.org,2002:python/object/apply:os.sys"),
        ("a: !include x.yaml", "the tag '!include' is refused"),
        ("a: &a [*a]", r":1:8: \*a: it is within itself"),
        ("a: *b", r":1:4: \*b: it is not known here"),
        ("? [a]\n: b", "a key that is not a scalar"),
        ("a: 1\n<<: {a: 2}", r":2:1: '<<' after other keys: write it first"),
        ("<<: 5", "'<<' needs a mapping, or a list of them"),
        ("a: [1", "not YAML: "),
        ("a:\n\t- b", r"file\.yaml:2:1: not YAML: "),
        ("\x00", "not YAML: "),
        ("- " * 200, "more than 100 values within each other"),
    ],
)
def test_what_is_refused_is_named_with_its_place(text: str, says: str) -> None:
    with pytest.raises(ConfigFileError, match=says):
        parsed(text)


def test_a_template_that_is_not_rendered_says_what_to_run() -> None:
    for text in ("a: {{ .Values.a }}", "# {{ a comment }}\n{{- if .x }}\na: 1\n{{- end }}"):
        with pytest.raises(
            ConfigFileError, match=r"^file\.yaml:[12]:[14]: a template .*: run `helm template` and pass"
        ):
            parsed(text)


def test_a_bomb_is_refused_before_it_grows() -> None:
    rows = "".join(f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 10)}]\n" for n in range(12))
    began = time.monotonic()
    with pytest.raises(ConfigFileError, match="more than 200000 values, those that aliases repeat included"):
        parsed("a: &a [x, x, x, x, x, x, x, x, x, x]\n" + rows)
    assert time.monotonic() - began < 5


def test_values_have_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_tree, "MOST", 4)
    assert parsed("[1, 2, 3]") == [[1, 2, 3]]
    with pytest.raises(ConfigFileError, match=r"file\.yaml:1:11: more than 4 values"):
        parsed("[1, 2, 3, 4]")


def test_without_pyyaml_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "yaml":
            raise ImportError(name)
        return usual(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(redelivery.ConfigError, match=r"file\.yaml: .*PyYAML: pip install 'redelivery\[yaml\]'"):
        read_content(b"a: 1", "file.yaml")


@pytest.mark.parametrize("text", ["on", "010", 'a "b" \\ c', "#", "tab\t nel\x85 ls\u2028 bom\ufeff", "é😀", "", " x "])
def test_what_is_quoted_is_read_as_the_same_str(text: str) -> None:
    assert parsed(f"- {quoted(text)}") == [[text]]


def test_half_a_surrogate_pair_is_not_written() -> None:
    with pytest.raises(redelivery.ConfigError, match="half a surrogate pair"):
        quoted("\ud800")
