"""The Java clients as one process: Peer.java, compiled once, asked line by line."""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import threading
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from redelivery import Byte, Float, Long, Short
from redelivery.model.values import INT_MAX, INT_MIN

HERE: Final = Path(__file__).parent
_COPY: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
_ANSWER: Final = 40.0  # seconds for one request; Java itself waits 10 s for a message
_TYPES: Final[Mapping[type, str]] = {
    Byte: "Byte",
    Short: "Short",
    Long: "Long",
    Float: "Float",
    str: "String",
    bool: "Boolean",
    int: "Integer",
    float: "Double",
}
_READ: Final[Mapping[str, type]] = {name: kind for kind, name in _TYPES.items()}


class JavaError(Exception):
    """What the Java client threw."""


@dataclass(frozen=True, slots=True)
class JavaMessage:
    """A message as Java has it. Values have our types: `Byte`, `Short`, `Long` and `Float` are those of Java.

    ``kind``: text, bytes, map, stream, object or none. ``headers``: see Messages.java.
    """

    kind: str
    body: Any = None
    properties: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, Any] = field(default_factory=dict)


class JavaClients:
    """Qpid JMS for a URL ``amqp://``, ActiveMQ's client for ``tcp://``. A context manager."""

    def __init__(self) -> None:
        """Start them; the first time they are fetched and compiled."""
        folder = _built()
        libraries, classes = folder / "libraries", folder / "classes"
        java = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        self._process = subprocess.Popen(  # noqa: S603  # a fixed command
            [*java, "-cp", f"{libraries}/*:{classes}", "Peer"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            bufsize=1,
        )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, name="java-clients")
        self._reader.start()

    def __enter__(self) -> JavaClients:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None, "it was started with one"
        assert self._process.stdout is not None, "it was started with one"
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        self._process.stdout.close()

    def send(self, url: str, destination: str, message: JavaMessage) -> str | None:
        """Send it and return its JMSMessageID. Its headers may have a ``ttl`` (`Long`, milliseconds), too."""
        words = [message.kind, _body(message), _named(message.properties), _named(message.headers)]
        (answer,) = self._ask("send", url, destination, *words)
        sent: str | None = _value(answer[1])
        return sent

    def receive(self, url: str, destination: str, count: int = 1) -> list[JavaMessage]:
        """The next ``count`` messages; fewer, where none came for 10 s."""
        return [_message(each) for each in self._ask("receive", url, destination, str(count))]

    def roll_back(self, url: str, destination: str, times: int) -> list[JavaMessage]:
        """Receive and roll back that often, then close the session; the message as it came each time."""
        return [_message(each) for each in self._ask("rollback", url, destination, str(times))]

    def request(self, url: str, destination: str) -> None:
        """Send a TextMessage whose reply-to is a temporary queue."""
        self._ask("request", url, destination)

    def reply(self, url: str, destination: str) -> JavaMessage:
        """What came to that temporary queue."""
        (answer,) = self._ask("reply", url, destination)
        return _message(answer)

    def close_connections(self) -> None:
        """For a broker that ends; they are made anew when they are needed."""
        self._ask("close")

    def _ask(self, *words: str) -> list[Sequence[str]]:
        assert self._process.stdin is not None, "it was started with one"
        self._process.stdin.write("\t".join(words) + "\n")
        answers: list[Sequence[str]] = []
        while True:
            answer = self._lines.get(timeout=_ANSWER).rstrip("\n").split("\t")
            if answer[0] == "done":
                return answers
            if answer[0] == "failed":
                raise JavaError(_value(answer[1]))
            answers.append(answer)

    def _read(self) -> None:
        assert self._process.stdout is not None, "it was started with one"
        for line in self._process.stdout:
            self._lines.put(line)


def _built() -> Path:
    """The folder with libraries and classes, in the cache of this user: by the sources that it was made of."""
    sources = sorted(HERE.glob("*.java"))
    digest = sha256(b"\0".join(path.read_bytes() for path in (HERE / "pom.xml", *sources))).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "redelivery"
    found = cache / f"java-clients-{digest}"
    if not found.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=cache, prefix="building-") as scratch:
            libraries, classes = Path(scratch, "made", "libraries"), Path(scratch, "made", "classes")
            _run(["mvn", "-q", "-B", "-f", str(HERE / "pom.xml"), _COPY, f"-DoutputDirectory={libraries}"], 300)
            command = ["javac", "-Xlint:-unchecked", "-cp", f"{libraries}/*", "-d", str(classes), *map(str, sources)]
            _run(command, 60)
            with contextlib.suppress(OSError):  # another process was first
                Path(scratch, "made").rename(found)
    return found


def _run(command: list[str], timeout: float) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)  # noqa: S603  # a fixed command
    assert done.returncode == 0, done.stdout + done.stderr


def _message(answer: Sequence[str]) -> JavaMessage:
    _, kind, body, properties, headers = answer
    read: Any = None
    if kind == "map":
        read = _mapping(body)
    elif kind == "stream":
        read = [_value(each) for each in body.split(",") if each]
    elif kind != "none":
        read = _value(body)
    return JavaMessage(kind, read, _mapping(properties), _mapping(headers))


def _body(message: JavaMessage) -> str:
    if message.kind == "none":
        return ""
    if isinstance(message.body, Mapping):
        return _named(message.body)
    if isinstance(message.body, list):
        return ",".join(map(_text, message.body))
    return _text(message.body)


def _named(values: Mapping[str, object]) -> str:
    return ",".join(f"{name}={_text(value)}" for name, value in values.items())


def _mapping(text: str) -> dict[str, Any]:
    return {name: _value(value) for name, _, value in (each.partition("=") for each in text.split(",") if each)}


def _text(value: object) -> str:
    if value is None:
        return "null:"
    if isinstance(value, bytes):
        return "bytes:" + b64encode(value).decode()
    text = str(value).lower() if isinstance(value, bool) else str(value)
    kind = "Long" if type(value) is int and not INT_MIN <= value <= INT_MAX else _TYPES[type(value)]
    return f"{kind}:{b64encode(text.encode()).decode()}"


def _value(encoded: str) -> Any:
    kind, _, text = encoded.partition(":")
    content = b64decode(text)
    if kind == "null":
        return None
    if kind == "bytes":
        return content
    if kind == "Boolean":
        return content == b"true"
    if kind not in _READ:
        return f"{kind} {content.decode()}"  # of no JMS type: a test that meets one sees it
    read = int if kind == "Long" and not INT_MIN <= int(content) <= INT_MAX else _READ[kind]
    return (
        read(content.decode())
        if read in (str, int)
        else read(float(content) if read in (float, Float) else int(content))
    )
