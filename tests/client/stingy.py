"""A peer over AMQP 1.0 that gives credit, and ends links, only as a test says; it keeps the messages that it got."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

pytest.importorskip("proton")  # with its reason, the files are skipped that need this one

from tests.client.shell import eventually
from tests.transports.amqp_frames import ACCEPTED, Frame, code, declared, transactional
from tests.transports.amqp_peer import PeerEnd, ScriptedPeer


class Stingy:
    """One listening peer; all of its connections behave alike.

    Attributes:
        bodies: of the messages that came, in their order; of a transaction's when it was discharged.
        credit: what a new link of a sender gets at once.
        coordinates: the same for the coordinator's.
        settled: the number of acknowledgements that have come.
        answers: whether what comes is accepted; else it is left unanswered.
    """

    def __init__(self, *, credit: int = 0, coordinates: int = 100, relay: bool = False) -> None:
        self.bodies: list[object] = []
        self.links: list[tuple[PeerEnd, Frame]] = []  # of senders
        self.receivers: list[tuple[PeerEnd, Frame]] = []
        self.coordinators: list[tuple[PeerEnd, Frame]] = []
        self.credit, self.coordinates, self.relay, self.answers = credit, coordinates, relay, True
        self.refuses, self.refused = False, 0  # links
        self.peer = ScriptedPeer(self._serve)
        self.url = f"amqp://127.0.0.1:{self.peer.port}"
        self._brought = self.settled = 0
        self._transactions: dict[bytes, list[object]] = {}

    def __enter__(self) -> Stingy:
        self.peer.__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        self.peer.__exit__(*raised)

    @property
    def ends(self) -> list[PeerEnd]:
        """Of its connections, in their order."""
        return self.peer.peers

    def give(self, credit: int, delivery_count: int = 0) -> None:
        """Credit for the link that was attached last."""
        eventually(lambda: self.links)
        end, link = self.links[-1]
        end.give(link, credit, delivery_count)

    def end_links(self, links: list[tuple[PeerEnd, Frame]] | None = None) -> None:
        """End those of senders, or these, as a peer does whose links were idle."""
        ended, links[:] = list(links := self.links if links is None else links), []
        for end, link in ended:
            end.detach(link, "amqp:link:detach-forced", "Idle timeout: 00:10:00")

    def bring(self, *bodies: bytes) -> None:
        """Messages for the receiver that was attached last."""
        end, link = self.receivers[-1]
        for body in bodies:
            self._brought += 1
            end.message(link, self._brought, body)

    def give_all(self, credit: int = 10) -> None:
        """Credit for each link, also the coordinators'."""
        for end, link in (*self.links, *self.coordinators):
            with suppress(OSError):  # of a connection that is gone
                end.give(link, credit)

    def _serve(self, end: PeerEnd) -> None:
        end.log_in("some peer", offered=("ANONYMOUS-RELAY",) if self.relay else ())
        coordinators: set[tuple[int, int]] = set()
        number = 0
        with suppress(OSError):
            while True:
                frame = end.take()
                self.settled += frame.name == "disposition"
                place = frame.channel, int(frame.fields.get("handle") or 0)
                if frame.name == "begin":
                    end.begun(frame)
                elif frame.name == "attach":
                    coordinators.discard(place)
                    if self.refuses:
                        self.refused += 1
                        end.refuse(frame, "amqp:not-found", "no such queue")
                        continue
                    end.confirm(frame)
                    if frame["role"]:
                        self.receivers.append((end, frame))
                    elif frame.address == "coordinator":
                        coordinators.add(place)
                        self._begin(end, frame, self.coordinators, self.coordinates)
                    else:
                        self._begin(end, frame, self.links, self.credit)
                elif frame.name == "transfer" and place in coordinators:
                    number += 1
                    self._coordinate(end, frame, b"t%d.%d" % (len(self.ends), number))
                elif frame.name == "transfer":
                    self._take(end, frame)
                elif frame.name != "flow":
                    end.agree_to_end(frame)

    def _begin(self, end: PeerEnd, frame: Frame, links: list[tuple[PeerEnd, Frame]], credit: int) -> None:
        if credit:
            end.give(frame, credit)
        links.append((end, frame))

    def _coordinate(self, end: PeerEnd, frame: Frame, name: bytes) -> None:
        if frame.order == ("declare",):
            self._transactions[name] = []
            end.settle(frame, declared(name))
            return
        _, transaction, failed = frame.order
        sent = self._transactions.pop(transaction)
        self.bodies += [] if failed else sent
        end.settle(frame)

    def _take(self, end: PeerEnd, frame: Frame) -> None:
        state = frame["state"]
        if state is not None and code(state) == 0x34:
            self._transactions[state.value[0]].append(frame.body)
            state = transactional(state.value[0])
        else:
            self.bodies.append(frame.body)
            state = ACCEPTED
        if self.answers:
            end.settle(frame, state)
