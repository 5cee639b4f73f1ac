"""Real brokers with a file of a test's own: started, and skipped where there are none (in CI that is a failure)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Final

import pytest
from tests.differential.files import spec_with, text_of

from redelivery.testing.brokers.native import NativeBroker
from redelivery.testing.brokers.ports import NotStartedError
from redelivery.testing.brokers.real import UnavailableError
from redelivery.testing.brokers.spec import BrokerSpec, Site
from redelivery.testing.brokers.specs import artemis, hornetq

Edit = Callable[[str], str]
FILES: Final = {
    "artemis": "broker.xml",
    "activemq": "activemq.xml",
    "hornetq": "hornetq-configuration.xml",
    "qpid": "broker.json",
}


def made(spec: BrokerSpec, text: Callable[[Site], str]) -> NativeBroker:
    """A broker that is not started yet, with that text as its file; close it."""
    missing = spec.source.missing()
    if missing is not None:
        raise UnavailableError(missing)
    return NativeBroker(spec_with(spec, FILES[spec.name], text))


@contextmanager
def running(spec: BrokerSpec, text: Callable[[Site], str]) -> Iterator[NativeBroker]:
    with closing(made(spec, text)) as broker:
        broker.start()
        yield broker


def refusal(spec: BrokerSpec, text: Callable[[Site], str]) -> str:
    """What a broker prints that does not start."""
    with closing(made(spec, text)) as broker:
        with pytest.raises(NotStartedError, match="it ended before it listened"):
            broker.start()
        return broker.output()


def with_a_store(edit: Edit) -> Callable[[Site], str]:
    """Artemis' file of the tests, which has a journal, changed."""
    return lambda site: edit((site.folder / FILES["artemis"]).read_text(encoding="utf-8"))


def artemis_with(settings: str, *queues: str) -> Callable[[Site], str]:
    """Artemis' file of the differential run, with more address settings and queues."""
    addresses = "".join(
        f'<address name="{each}"><anycast><queue name="{each}"/></anycast></address>' for each in queues
    )

    def text(site: Site) -> str:
        usual = text_of("artemis", site.host, site.ports)
        usual = usual.replace("</address-settings>", f"{settings}</address-settings>")
        return usual.replace("</addresses>", f"{addresses}</addresses>")

    return text


def with_acceptors(text: str, site: Site) -> str:
    """A file of address settings and addresses alone, with what Artemis needs to be reached, without users."""
    usual = text_of("artemis", site.host, site.ports)
    before = usual.partition("<address-settings>")[0].partition('<core xmlns="urn:activemq:core">')[2]
    return text.replace('<core xmlns="urn:activemq:core">', f'<core xmlns="urn:activemq:core">{before}', 1)


def hornetq_with(settings: str, *queues: str, more: str = "") -> Callable[[Site], str]:
    """A file of HornetQ with these settings and queues, and more in front of them."""
    made = "".join(f'<queue name="{each}"><address>{each}</address></queue>' for each in queues)
    inside = f"{more}<queues>{made}</queues><address-settings>{settings}</address-settings>"
    return lambda _: f'<configuration xmlns="urn:hornetq">{inside}</configuration>'


def setting(match: str, **values: object) -> str:
    """An ``address-setting``; ``_`` in names stands for ``-``."""
    inside = "".join(f"<{key.replace('_', '-')}>{value}</{key.replace('_', '-')}>" for key, value in values.items())
    return f'<address-setting match="{match}">{inside}</address-setting>'


ARTEMIS: Final = artemis.SPEC
HORNETQ: Final = hornetq.SPEC


def within(pattern: str, text: str) -> str:
    """The first match of a pattern; empty where there is none."""
    found = re.search(pattern, text, re.DOTALL)
    return found[0] if found else ""
