"""A hostile, broken or foreign file is a ConfigError that names it; nothing is loaded from elsewhere, nothing hangs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.policies.readers.documents import ARTEMIS, address_settings, read, written

import redelivery
from redelivery.policies.brokers import formats
from redelivery.policies.files import xml
from redelivery.policies.files.places import ConfigFileError

LAUGHS = "".join(f'<!ENTITY a{n + 1} "{f"&a{n};" * 10}">' for n in range(10))


@pytest.mark.parametrize(
    "text",
    [
        f'<!DOCTYPE core [<!ENTITY a0 "ha">{LAUGHS}]><core>&a10;</core>',
        '<!DOCTYPE core [<!ENTITY x SYSTEM "file:///etc/passwd">]><core>&x;</core>',
        '<!DOCTYPE core SYSTEM "http://127.0.0.1:1/x.dtd"><core/>',
        '<!DOCTYPE core [<!ENTITY % x SYSTEM "file:///etc/passwd"> %x;]><core/>',
        "<!DOCTYPE core><core/>",
    ],
    ids=["billion laughs", "external entity", "external DTD", "parameter entity", "empty DTD"],
)
def test_a_dtd_is_refused_whatever_is_in_it(text: str) -> None:
    with pytest.raises(ConfigFileError, match=r"file\.xml:\d+:\d+: a DTD or an entity is refused"):
        read(text)


@pytest.mark.parametrize(
    "content",
    [b"", b"<core", b"<a></b>", b"\xff\xfe\x00", b"<core>\x00</core>", b'<?xml version="1.0" encoding="x-no"?><core/>'],
    ids=["empty", "cut off", "crossed", "not text", "NUL", "strange encoding"],
)
def test_what_is_not_xml_is_refused(content: bytes) -> None:
    with pytest.raises(ConfigFileError, match=r"^file\.xml"):
        formats.read_content(content, "file.xml")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b" \n", "the file is empty"),
        (b"orders: 5", "neither XML nor JSON: it begins with 'o'"),
        (b"\x89PNG\r\n", "neither XML nor JSON"),
        (b"\x1f\x8b\x08", "neither XML nor JSON"),
    ],
)
def test_what_is_neither_xml_nor_json_is_called_so(content: bytes, says: str) -> None:
    with pytest.raises(ConfigFileError, match=says):
        formats.read_content(content, "file.xml")


def test_elements_have_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml, "MOST", 5)
    with pytest.raises(ConfigFileError, match=r"file\.xml:1:23: more than 5 elements"):
        read("<core>" + "<x/>" * 5 + "</core>")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_elements_are_counted_before_they_are_read(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading hundreds of thousands of them first takes half a minute; what only looks like one is none."""
    monkeypatch.setattr(xml, "MOST", 5)
    looks = "<!-- <x/><x/> --><![CDATA[<x/><x/>]]><?x <x/><x/> ?>" * 3
    xml.parse(f"<core>{looks}{'<x/>' * 4}</core>".encode(encoding), "file.xml")
    with pytest.raises(ConfigFileError, match="more than 5 elements"):
        xml.parse(f"<core>{looks}{'<x>' * 5} is not well-formed".encode(encoding), "file.xml")


def test_an_error_does_not_list_a_thousand_problems() -> None:
    with pytest.raises(ConfigFileError) as raised:
        read("<core>" + "<redeliver/>" * 1_000 + "</core>")
    assert len(raised.value.problems) == 1_000
    assert str(raised.value).splitlines()[-1] == "and 900 more"


def test_elements_have_a_depth() -> None:
    with pytest.raises(ConfigFileError, match="more than 100 elements within each other"):
        read("<core>" + "<x>" * 100_000)


def test_a_file_has_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "LARGEST", 10)
    with pytest.raises(ConfigFileError, match="it has 11 bytes; 10 are read at most"):
        formats.read_content(b"<c></c>    ", "file.xml")


@pytest.mark.parametrize("root", ["html", "project", "server"])
def test_a_file_of_another_kind_is_refused(root: str) -> None:
    with pytest.raises(ConfigFileError, match=f"root element '{root}' is of none of the brokers"):
        read(f"<{root}/>")


def test_a_missing_file_and_a_folder_are_errors_that_name_them(tmp_path: Path) -> None:
    for path, says in ((tmp_path / "none.xml", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(redelivery.ConfigError, match=f"{path}: cannot be read: {says}"):
            redelivery.policies.read(path)


@pytest.mark.parametrize("href", ["../outside.xml", "/etc/passwd", "file:///etc/passwd", "http://127.0.0.1:1/x", ""])
def test_an_include_of_another_place_is_refused(tmp_path: Path, href: str) -> None:
    written(tmp_path, "outside.xml", "<address-settings/>")
    path = written(tmp_path, "etc/broker.xml", ARTEMIS.format(f'<xi:include href="{href}"/>'))
    with pytest.raises(ConfigFileError, match=r"broker\.xml:3:13: include of .*: only "):
        redelivery.policies.read(path)


def test_an_include_by_a_link_to_another_place_is_refused(tmp_path: Path) -> None:
    outside = written(tmp_path, "outside.xml", "<address-settings/>")
    path = written(tmp_path, "etc/broker.xml", ARTEMIS.format('<xi:include href="link.xml"/>'))
    (path.parent / "link.xml").symlink_to(outside)
    with pytest.raises(ConfigFileError, match="only files below"):
        redelivery.policies.read(path)


def test_an_include_of_itself_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "broker.xml", ARTEMIS.format('<xi:include href="broker.xml"/>'))
    with pytest.raises(ConfigFileError, match="includes itself"):
        redelivery.policies.read(path)


@pytest.mark.parametrize(
    ("files", "each", "says"),
    [(30, 1, "more than 20 files that include each other"), (12, 2, "more than 200 files are included")],
    ids=["one within the other", "each twice"],
)
def test_includes_have_a_depth_and_a_number(tmp_path: Path, files: int, each: int, says: str) -> None:
    for number in range(files):
        written(tmp_path, f"{number}.xml", ARTEMIS.format(f'<xi:include href="{number + 1}.xml"/>' * each))
    written(tmp_path, f"{files}.xml", "<core/>")
    with pytest.raises(ConfigFileError, match=says):
        redelivery.policies.read(tmp_path / "0.xml")


def test_an_include_that_is_missing_is_an_error_at_the_line_that_names_it(tmp_path: Path) -> None:
    path = written(tmp_path, "broker.xml", ARTEMIS.format('<xi:include href="other.xml"/>'))
    with pytest.raises(ConfigFileError, match=r"broker\.xml:3:13: include of 'other\.xml': .*: No such file"):
        redelivery.policies.read(path)


def test_an_include_may_be_named_by_a_property(tmp_path: Path) -> None:
    written(tmp_path, "parts/own.xml", '<address-settings><address-setting match="a"/></address-settings>')
    path = written(tmp_path, "broker.xml", ARTEMIS.format('<xi:include href="${include.path}/own.xml"/>'))
    with pytest.raises(ConfigFileError, match=r"broker\.xml:3:13: .*placeholder \$\{include\.path\} has no value"):
        redelivery.policies.read(path)
    found = redelivery.policies.read(path, properties={"include.path": "parts"})
    assert found.rules.names() == redelivery.policies.read(path, properties={"include.path": "./parts"}).rules.names()
    assert found.rules.names()
    with pytest.raises(ConfigFileError, match="only files below"):
        redelivery.policies.read(path, properties={"include.path": "/etc"})


def test_an_include_is_refused_where_there_is_no_file() -> None:
    with pytest.raises(ConfigFileError, match="read it by its path"):
        read(ARTEMIS.format('<xi:include href="other.xml"/>'))


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(redelivery.ConfigError, match="format='kafka': use one of activemq, artemis"):
        read("<core/>", format="kafka")


def test_an_error_does_not_repeat_a_huge_value() -> None:
    with pytest.raises(ConfigFileError) as raised:
        read(address_settings(x={"redelivery_delay": "9" * 1_000_000}))
    assert len(str(raised.value)) < 300


def test_the_xml_library_is_loaded_when_a_file_is_read_and_not_before() -> None:
    code = """
import sys, redelivery, redelivery.policies
redelivery.RedeliveryPolicyMap
assert "defusedxml" not in sys.modules and "redelivery.policies.brokers.formats" not in sys.modules
import redelivery.policies.brokers.files
assert "socket" not in sys.modules and "urllib.request" not in sys.modules
redelivery.policies.brokers.files.read_content(b"<core/>", "x")
assert "defusedxml" in sys.modules
assert "socket" not in sys.modules and "urllib.request" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=150)  # noqa: S603  # our own code


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"[1, 2]", "no names of a broker known here"),
        (b'["a"]', "no names of a broker known here"),
        (b"[[{}]]", "no names of a broker known here"),
        (b'[{"apply-to": "queues"}, 5]', "policies has an element that is not an object"),
        (b'{"policies": "x", "queues": []}', "policies is not a list"),
        (b'{"virtualhostnodes": {"name": "x"}}', "virtualhostnodes is not a list"),
        (b'{"virtualhosts": [{"name": "x", "queues": [5]}]}', "queues has an element that is not an object"),
    ],
)
def test_json_that_is_something_else_is_refused(content: bytes, says: str) -> None:
    with pytest.raises(ConfigFileError, match=says):
        formats.read_content(content, "file.json")


def test_artemis_bootstrap_file_names_the_one_to_be_passed() -> None:
    server = '<server configuration="file:etc/broker.xml"/>'
    with pytest.raises(ConfigFileError, match=r"pass the file that it names \(file:etc/broker\.xml\)"):
        read(f'<broker xmlns="http://activemq.apache.org/schema"><jaas-security domain="a"/>{server}</broker>')


@pytest.mark.parametrize(
    "text",
    [
        '<configuration xmlns="urn:foo"><core/></configuration>',
        "<configuration><appender/></configuration>",  # of a logging library
        "<configuration/>",
    ],
)
def test_another_program_s_configuration_is_refused(text: str) -> None:
    with pytest.raises(ConfigFileError, match="neither Artemis' nor HornetQ's"):
        read(text, "logback.xml")
