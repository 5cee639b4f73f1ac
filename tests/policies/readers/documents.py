"""Files of the tests: what stands in them, with or without what is around it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

from redelivery.policies.brokers.formats import read_content
from redelivery.policies.brokers.policies import BrokerPolicies

ARTEMIS = """\
<configuration xmlns="urn:activemq" xmlns:xi="http://www.w3.org/2001/XInclude">
<core xmlns="urn:activemq:core">
{}
</core>
</configuration>
"""

CLASSIC = """\
<beans xmlns="http://www.springframework.org/schema/beans">
<broker xmlns="http://activemq.apache.org/schema/core" schedulerSupport="true">
{}
</broker>
</beans>
"""


REDELIVERY = """
<plugins>
  <redeliveryPlugin fallbackToDeadLetter="{fallback}" sendToDlqIfMaxRetriesExceeded="{dead}">
    <redeliveryPolicyMap><redeliveryPolicyMap>
      <redeliveryPolicyEntries>
        <redeliveryPolicy queue="SpecialQueue" maximumRedeliveries="4" redeliveryDelay="10000"/>
      </redeliveryPolicyEntries>
      {default}
    </redeliveryPolicyMap></redeliveryPolicyMap>
  </redeliveryPlugin>
</plugins>"""


def address_settings(**settings: Mapping[str, object]) -> str:
    """A ``broker.xml`` with these settings by match; ``_`` in names stands for ``-``."""
    entries = []
    for match, values in settings.items():
        inside = "".join(f"<{key.replace('_', '-')}>{value}</{key.replace('_', '-')}>" for key, value in values.items())
        entries.append(f'<address-setting match="{match}">{inside}</address-setting>')
    return ARTEMIS.format("<address-settings>" + "\n".join(entries) + "</address-settings>")


def read(text: str, name: str = "file.xml", **options: object) -> BrokerPolicies:
    return read_content(dedent(text).encode(), name, **options)  # type: ignore[arg-type]  # handed through


def classic(inside: str, **options: object) -> BrokerPolicies:
    return read(CLASSIC.format(dedent(inside)), "activemq.xml", **options)


def redelivery_plugin(*, fallback: bool = True, dead: bool = True, default: str = "") -> str:
    """Write Classic's redeliveryPlugin with a policy for SpecialQueue, and with this entry for all others."""
    return REDELIVERY.format(fallback=str(fallback).lower(), dead=str(dead).lower(), default=default)


def policy_entries(inside: str) -> str:
    return f"<destinationPolicy><policyMap><policyEntries>{inside}</policyEntries></policyMap></destinationPolicy>"


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text), encoding="utf-8")
    return path
