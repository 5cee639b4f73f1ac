"""STOMP without I/O: bytes in, frames out; the handshake; when a heart-beat is due, and when the peer is silent."""

from __future__ import annotations

import re
from typing import Final

from redelivery.model.errors import (
    ConfigError,
    ConnectError,
    ConnectionLostError,
    JMSError,
    MessageFormatError,
    ProtocolError,
    unseen,
)
from redelivery.transports.stomp.codec.control import ControlFrames
from redelivery.transports.stomp.codec.errors import broker_error
from redelivery.transports.stomp.codec.frames import Frame
from redelivery.transports.stomp.codec.reader import FrameReader, RawFrame

HEARTBEAT: Final = b"\n"
# Intervals without a byte after which the peer is gone. A healthy ActiveMQ Classic takes up to 2 for its first beat,
# and a busy machine is late; brokers themselves wait for 2 or 3.
_SILENCE: Final = 2.5
_CHECKS: Final = 3  # per interval: then a beat is never more than two thirds of an interval late

_heart_beat = re.compile(r"(\d{1,9}),(\d{1,9})")


class StompEngine:
    """One connection.

    Args:
        host: the virtual host to name; empty: none.
        heartbeat: seconds between signs of life, both ways; 0 for none.
        max_body: the largest body that is read.
        versions: that are offered.
    """

    def __init__(self, host: str, heartbeat: float, max_body: int, versions: str = "1.2,1.1") -> None:
        self._versions = versions
        self.reader = FrameReader(max_body=max_body)
        self.host = host
        self._heartbeat_ms = round(heartbeat * 1000)
        self._out = 0.0  # seconds between the checks whether we have written; 0: never
        self._in = 0.0  # seconds between signs of life that the peer has promised; 0: none
        self._heard_at = 0.0
        self._wrote_at = 0.0
        self.version = ""
        self.server = ""
        self.session = ""

    @unseen
    def connect(self, login: str | None, passcode: str | None, client_id: str | None) -> bytes:
        """CONNECT.

        Raises:
            ConfigError: the login, passcode or client id holds what STOMP cannot carry there; it is not shown.
        """
        headers = {"heart-beat": f"{self._heartbeat_ms},{self._heartbeat_ms}"}
        if client_id is not None:
            headers["client-id"] = client_id
        try:
            return ControlFrames("1.2", self.host).connect(login, passcode, headers, self._versions)
        except MessageFormatError as error:
            raise ConfigError(f"CONNECT: {error}") from error

    def connected(self, data: bytes, now: float) -> list[RawFrame] | None:
        """Take the bytes that answer CONNECT; None until it is answered, else what follows the answer.

        Raises:
            SecurityError, InvalidClientIDError: the broker refuses.
            ConnectError: it refuses for another reason.
            ProtocolError: it speaks another protocol, or no version of STOMP that we know.
        """
        frames = self.reader.feed(data)
        if not frames:
            return None
        frame = Frame(*frames[0])
        if frame.command == "ERROR":
            error = broker_error(frame)
            raise ConnectError(str(error)) if type(error) is JMSError else error
        if frame.command != "CONNECTED":
            raise ProtocolError(f"the peer answers CONNECT with {frame.command}")
        headers = frame.headers
        self.version = headers.get("version", "1.0")
        if self.version not in ("1.2", "1.1"):
            raise ProtocolError(f"the peer speaks STOMP {self.version} only; 1.2 or 1.1 is needed")
        self.reader.version = self.version
        self.server = headers.get("server", "")
        self.session = headers.get("session", "")
        self._negotiate(headers.get("heart-beat", "0,0"))
        self._heard_at = self._wrote_at = now
        return frames[1:]

    def receive(self, data: bytes) -> list[RawFrame]:
        """The frames that these bytes complete. Raises ProtocolError."""
        return self.reader.feed(data)

    def never_silent_for(self, seconds: float) -> None:
        """Beat twice in so many seconds even where no heart-beats were agreed on; 0: there is no need."""
        if seconds and not self._out:
            self._out = seconds / 2

    def next_deadline(self, now: float) -> float | None:
        """The time to call `tick` next; None where there are no heart-beats."""
        intervals = [each for each in (self._out, self._in) if each]
        if not intervals:
            return None
        due = now + min(intervals) / _CHECKS
        # a peer that is silent is gone at that moment, not at the check after it
        return min(due, self._silent_until) if self._in and now < self._silent_until else due

    def tick(self, now: float, *, heard: bool, wrote: bool) -> bytes:
        """The bytes to send to be heard; ``heard`` and ``wrote``: whether bytes came and went since the last tick.

        Read what is there before: a process that slept must not blame its peer.

        Raises:
            ConnectionLostError: the peer was silent for two and a half of the intervals that it promised.
        """
        if heard:
            self._heard_at = now
        elif self._in and now >= self._silent_until:
            raise ConnectionLostError(
                f"nothing came for {now - self._heard_at:.1f} s, where a heart-beat was promised every {self._in:g} s"
            )
        if wrote:
            self._wrote_at = now
        elif self._out and now - self._wrote_at >= self._out / _CHECKS * 0.9:
            self._wrote_at = now
            return HEARTBEAT
        return b""

    @property
    def _silent_until(self) -> float:
        return self._heard_at + _SILENCE * self._in

    def _negotiate(self, heart_beat: str) -> None:
        """STOMP 1.2, "Heart-beating": each way the larger of what one can and the other wants; 0: not at all."""
        match = _heart_beat.fullmatch(heart_beat.replace(" ", ""))
        if match is None:
            raise ProtocolError(f"heart-beat {heart_beat[:40]!r} is not two numbers of milliseconds")
        can, wants = int(match[1]), int(match[2])
        ours = self._heartbeat_ms
        self._out = max(ours, wants) / 1000 if ours and wants else 0.0
        self._in = max(ours, can) / 1000 if ours and can else 0.0
