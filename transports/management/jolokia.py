"""Jolokia: Java's management (JMX) over HTTP, as the web consoles of ActiveMQ Artemis and ActiveMQ Classic have it.

https://jolokia.org/reference/html/manual/jolokia_protocol.html. Both consoles refuse who names no origin, or one that
their ``jolokia-access.xml`` does not allow: as they are installed, Artemis allows ``localhost``, Classic any.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from redelivery.model.errors import JMSError, ProtocolError, SecurityError
from redelivery.transports.management.address import ManagementAddress
from redelivery.transports.management.answers import REFUSALS
from redelivery.transports.management.http import HttpAnswer, JsonClient

_SHOWN: Final = 200  # characters of an error of the broker
_LOCAL: Final = "http://localhost"
_FORBIDDEN: Final = 403
_ABSENT: Final = 404
_TOO_MANY: Final = 429
_SPECIAL: Final = re.compile(r'["*?\\\n]')
_JAVA: Final = re.compile(r"^(?:[\w.$]+(?:Exception|Error) ?: ?)+")  # classes before what they say
_NOT_ALLOWED: Final = ("java.lang.SecurityException", "java.lang.IllegalAccessException")


class JolokiaClient:
    """Raises of all calls: as `JsonClient.call`; of a refusal, the text has the broker's words.

    ``address``: of the console. ``path``: Jolokia's, of this broker: ``/console/jolokia``; the address may leave it
    out.
    """

    def __init__(self, address: ManagementAddress, path: str) -> None:
        console, _, _ = path.strip("/").partition("/")
        given = address.path
        if given in ("", f"/{console}"):  # as a browser shows it
            given = path
        masked = address.masked.removesuffix(address.path) + given
        self.address = replace(address, path=given, masked=masked)
        place = f"[{address.host}]" if ":" in address.host else address.host
        port = "" if address.port is None else f":{address.port}"
        self._origins = [f"{address.scheme}://{place}{port}", _LOCAL]

    def read(self, mbean: str, attributes: Sequence[str] = (), *, doing: str) -> Any:
        """Attributes of an MBean, by their names; of a pattern, those of each by its name.

        Raises:
            InvalidDestinationError: it is not there.
        """
        body: dict[str, Any] = {"type": "read", "mbean": mbean, "config": {"ignoreErrors": True}}
        if attributes:
            body["attribute"] = list(attributes)
        return self._ask(body, doing)

    def call(self, mbean: str, operation: str, *arguments: Any, doing: str, more_time: float = 0.0) -> Any:
        """The result of an operation, named with its types where there are several.

        ``more_time``: seconds beyond the usual ones. Raises InvalidDestinationError: the MBean is not there.
        """
        body = {"type": "exec", "mbean": mbean, "operation": operation, "arguments": list(arguments)}
        return self._ask(body, doing, more_time=more_time)

    def search(self, pattern: str, *, doing: str) -> list[str]:
        """The names of the MBeans that there are of a pattern."""
        found = self._ask({"type": "search", "mbean": pattern}, doing)
        if not isinstance(found, list):
            raise self._strange()
        return [str(each) for each in found]

    def _ask(self, body: Mapping[str, Any], doing: str, *, more_time: float = 0.0) -> Any:
        answer = self._answer(body, more_time)
        said, refusal = answer.body, answer.refusal(doing)
        if not isinstance(said, dict) or not isinstance(said.get("status"), int):  # nor is it Jolokia that refuses
            if answer.status == _TOO_MANY:
                raise SecurityError(
                    f"{doing}: the broker's management lets this login wait, as it failed before: try again in some "
                    f"seconds ({_TOO_MANY})"
                )
            if answer.status == _ABSENT:
                path = self.address.path
                raise ProtocolError(f"there is no management at {self.address.masked}: is its path {path} right?")
            raise refusal or self._strange()
        if said["status"] != 200:
            raise _refused(said, doing)
        return said.get("value")

    def _answer(self, body: Mapping[str, Any], more_time: float) -> HttpAnswer:
        """The first origin that is let in is the one of the next questions, too."""
        for origin in list(self._origins):
            client = JsonClient(self.address, headers={"Origin": origin})
            answer = client.ask("POST", "/", body, more_time=more_time)
            if not _of_origin(answer):
                self._origins = [origin]
                break
        return answer

    def _strange(self) -> ProtocolError:
        return ProtocolError(
            f"what answers at {self.address.masked} is not Jolokia, the management of the broker's web console"
        )


def quoted(name: str) -> str:
    """A value of an MBean's name, in quotes, as ``javax.management.ObjectName.quote`` makes it."""
    return '"' + _SPECIAL.sub(lambda found: "\\n" if found[0] == "\n" else "\\" + found[0], name) + '"'


def _of_origin(answer: HttpAnswer) -> bool:
    said = answer.body if isinstance(answer.body, dict) else {}
    return _FORBIDDEN in (answer.status, said.get("status")) and "origin" in str(said.get("error", said)).lower()


def _refused(said: Mapping[str, Any], doing: str) -> JMSError:
    status, error = said["status"], " ".join(str(said.get("error") or "nothing").split())
    kind = SecurityError if said.get("error_type") in _NOT_ALLOWED else REFUSALS.get(status, JMSError)
    return kind(f"{doing}: the broker's management says: {_JAVA.sub('', error)[:_SHOWN]} ({status})")
