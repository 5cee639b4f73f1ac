"""Where we differ from the Java client, and why: one table. What happens instead stands in courses.txt.

`test_traces` holds every entry to its word: the scenario takes exactly the course stated there, and that course differs
from the recorded ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from tests.conformance.pairs import KINDS
from tests.traces.by_broker import ALIKE, CHANCES, COUNTED, ROWS
from tests.traces.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Difference:
    """``why``: a key of `REASONS`. ``instead``: what we do. ``targets``: where; none named: everywhere.

    ``fault``: the number of the fault of the Java client that is not copied. ``chance``: it may also go as recorded.
    """

    why: str
    instead: str
    targets: tuple[str, ...] = ()
    fault: int | None = None
    chance: bool = False


REASONS: Final[Mapping[str, str]] = {
    "fault": "a fault of the Java client that is not copied",
    "rule": "a rule of ours that the documentation states",
    "option": "an option of the OpenWire client that has no counterpart; played without it",
    "STOMP": "it carries less than OpenWire",
    "counts": "what a broker counts, and tells over the protocol, when a consumer or a connection ends",
    "broker": "what a broker does by itself, or has not",
    "copies": "dead letters are copies of ours",
    "Qpid": "Qpid JMS leaves redelivery to the broker; here a message waits with the session and is poisoned there",
    "embedded": "the embedded broker knows more, or can do less",
}

FAULTS: Final[Mapping[int, tuple[str, str]]] = {  # what the Java client does, and what we do
    1: (
        "start() after stop() ends the wait for a redelivery: later messages overtake, acknowledgements are lost",
        "the wait goes on, the order is kept, and the commit succeeds",
    ),
    2: ("setting a listener, on any consumer of the session, ends the wait for a redelivery", "the wait goes on"),
    3: (
        "ranged acknowledgements assume the broker's order: in another one they are lost, or poison the wrong message",
        "each message is acknowledged by itself and poisoned by its own count",
    ),
    4: (
        "optimizeAcknowledge with a listener that raises forgets acknowledgements and strands the message",
        "the option is refused by its name; DUPS_OK sends acknowledgements together and forgets none",
    ),
    5: (
        "with prefetch 0, receive(timeout) and receiveNoWait() wait for the whole redelivery delay",
        "they return nothing in time",
    ),
    6: (
        "failover during a delay delivers twice: from the broker, and from the timer that still runs",
        "a lost connection ends its delays; the broker alone delivers again",
    ),
    7: (
        "at close one consumer's deliveries are counted: what another was given is released as a new message",
        "everything that was delivered is redelivered with JMSRedelivered",
    ),
    8: ("maximumRedeliveries -2 dead-letters every message unseen", "ConfigError; a negative delay means at once"),
    9: (
        "after a lost connection, prefetched messages that nobody saw are over a limit of 0 and are dead-lettered",
        "nothing that was not delivered is over the limit",
    ),
    10: ("with prefetch 1 it is a race how many messages a transaction gets", "it gets them all"),
    11: (
        "a listener that throws an Error, or closes its consumer and throws, acknowledges the message",
        "whatever a listener raises, its message is redelivered; KeyboardInterrupt and SystemExit are no exception",
    ),
    12: (
        "acknowledge() on an object from before recover() removes the message, which is redelivered all the same",
        "it acknowledges nothing",
    ),
    13: (
        "map.put(pattern, policy) lets chance decide between patterns, even against the exact name",
        "a total order of patterns: the most specific wins",
    ),
}

ELSEWHERE: Final[Mapping[int, str]] = {  # what holds the faults that no scenario shows here
    6: "tests/conformance/test_reconnect.py",
    8: "tests/policies/test_redelivery_policy.py",
    13: "tests/policies/test_destination_map.py",
}
_STOMP: Final = ("stomp-activemq", "stomp-activemq-copy")


def _fault(number: int, instead: str) -> Difference:
    return Difference("fault", instead, fault=number)


def _rule(instead: str, *targets: str) -> Difference:
    return Difference("rule", instead, targets)


def _option(instead: str) -> Difference:
    return Difference("option", instead)


def _vm(instead: str) -> Difference:
    return Difference("embedded", instead, ("vm",))


def _stomp(instead: str, *targets: str) -> Difference:
    return Difference("STOMP", instead, targets or _STOMP)


_WAITS = "the wait goes on; order and acknowledgements are kept"
_WINDOW = "a transaction gets every message, whatever the prefetch"
_OWN_POISON = "each message is acknowledged by itself and poisoned by its own count"
_ON_TIME = "nothing comes when the time is over; the message comes after its delay"
_FAILED = "the message is redelivered by the policy, as after any exception"
_LISTENING = "while a listener is set, only its callbacks may use the session (JMS): IllegalStateError"
_COPIED = "a copy has an id of its own, so there are two dead letters"
_SEEN = "it knows which messages were delivered; the others are released as new ones"

_CHARGED = _stomp("when a subscription ends, the broker marks what it had only prefetched as redelivered, too")
_NO_CAUSE = replace(  # unless the broker, which looks for expired messages now and then, is first
    _stomp("the NACK of an expired message becomes a dead letter without a cause", "stomp-activemq"), chance=True
)

DIFFERENCES: Final[Mapping[str, tuple[Difference, ...]]] = {
    # start, stop, listeners
    "stop-start-during-delay": (_fault(1, _WAITS),),
    "stop-start-during-delay-client": (_fault(1, _WAITS),),
    "stop-start-during-delay-commit-each": (_fault(1, _WAITS),),
    "stop-start-during-delay-poison": (_fault(1, _WAITS),),
    "stop-rollback-start": (_fault(1, _WAITS),),
    "listener-set-during-delay": (_fault(2, _WAITS),),
    "listener-set-on-other-consumer-breaks-wait": (_fault(2, "qa waits, qb goes on"),),
    "listener-set-on-other-consumer-during-delay": (_rule(_LISTENING),),
    "individual-listener-throw": (_rule(_LISTENING),),
    "listener-error": (_fault(11, _FAILED),),
    "listener-error-last": (_fault(11, _FAILED),),
    "listener-close-throw-inside": (_fault(11, "it goes back to the broker with the close"),),
    "topic-dups-ok-listener-throw": (_fault(11, _FAILED),),
    # order, batches and prefetch
    "nonblocking-innocent-poisoned": (_fault(3, _OWN_POISON),),
    "client-poison-nonblocking": (_fault(3, _OWN_POISON),),
    "client-ack-out-of-order-nonblocking": (_fault(3, _OWN_POISON),),
    "listener-optimize-acknowledge": (
        _fault(4, "played without the option, which is refused by name: nothing is lost"),
    ),
    "prefetch-0-rollback": (_fault(5, _ON_TIME),),
    "prefetch-0-nowait-during-delay": (_fault(5, _ON_TIME),),
    "prefetch-0-listener": (_rule("a prefetch of 0 works as 1, so a listener may have it"),),
    "batch-prefetch-1": (_fault(10, _WINDOW),),
    "batch-prefetch-1-rollback-one": (_fault(10, _WINDOW),),
    "batch-prefetch-1-individual": (_stomp("no more unacknowledged messages come than the prefetch says"),),
    "two-consumers-one-session-same-queue": (
        Difference(
            "STOMP", "which consumer is given which message is up to the broker", ("stomp-activemq",), chance=True
        ),
    ),
    "priority-supported-late-high": (_option("a redelivered message comes first, whatever its priority"),),
    "priority-supported-batch-rollback": (_option("in the broker's order; each poisoned by its own count"),),
    # acknowledgements
    "individual-stale-ack-after-recover": (_fault(12, "a stale object acknowledges nothing"),),
    "client-ack-after-consumer-close": (_rule("what a closed consumer delivered can still be acknowledged (JMS)"),),
    "individual-consumer-close": (
        _rule("what a closed consumer delivered can still be acknowledged (JMS); the next consumer gets the rest"),
    ),
    "client-consumer-close-reopen": (
        _rule("the close waits for the acknowledgement; the next consumer gets the rest"),
    ),
    # closed and lost
    "second-consumer-during-delay": (
        replace(_fault(7, "every message that was delivered is redelivered with JMSRedelivered"), chance=True),
    ),
    "closed-operations": (replace(_CHARGED, chance=True),),
    "kill-commit": (_rule("a lost connection is told apart from a closed one: ConnectionLostError"),),
    "kill-prefetched": (_vm(_SEEN),),
    "dups-ok-receive-kill": (_vm(_SEEN),),
    "kill-prefetched-poisons-unseen": (
        replace(_fault(9, "nothing that was not delivered is over the limit"), chance=True),
    ),
    # limits at dispatch
    # policies, selectors, composite queues
    "policy-star-middle-versus-last": (_rule("word by word a literal goes before `*`, so `a.b.*` wins, not `a.*.c`"),),
    "policy-wildcard-consumer": (_rule("the policy is that of the queue that a message came from"),),
    "selector-delivery-count": (_CHARGED,),
    "composite-send-poison": (
        _vm(_COPIED),
        _rule(_COPIED, "stomp-activemq-copy", "stomp-embedded", "amqp-embedded"),
        _stomp("the broker's own dead letter carries no cause; a copy does", "stomp-embedded"),
    ),
    # expiry and dead letters
    "expired-check-off": (_option("an expired message is never shown"),),
    "expired-prefetched": (_NO_CAUSE,),
    "expired-in-hand-rollback": (_NO_CAUSE,),
    "expired-during-delay": (_NO_CAUSE,),
    "expired-during-delay-nonblocking": (_NO_CAUSE,),
    "forward-from-dlq": (_stomp("the broker's own dead letter carries no cause; a copy does", "stomp-activemq"),),
    "poison-on-the-individual-dlq": (
        _rule(
            "a connection has one strategy, so the dead letter of a dead letter goes one queue on",
            "stomp-activemq-copy",
        ),
    ),
}


_BROKER_FAULTS: Final = {"batch-prefetch-1-commit-frees": 10}
BY_BROKER: Final[Mapping[str, tuple[Difference, ...]]] = {
    name: tuple(
        Difference(why, instead, targets, _BROKER_FAULTS.get(name) if why == "fault" else None, chance=rows is CHANCES)
        for rows in (CHANCES, ROWS)
        for why, instead, targets, names in rows
        if name in names.split()
    )
    for name in {name for *_, names in (*CHANCES, *ROWS) for name in names.split()}
}


def differences(scenario: Scenario, target: str) -> tuple[Difference, ...]:
    """All that the table says of a scenario at a target; of several reasons of an outcome the first is the main one."""
    entries = (*DIFFERENCES.get(scenario.id, ()), *BY_BROKER.get(scenario.id, ()))
    if scenario.id in COUNTED.get(KINDS[target].title if target in KINDS else "", ()):
        return ()
    name = ALIKE.get(target, target)
    return tuple(entry for entry in entries if not entry.targets or name in entry.targets)


def difference(scenario: Scenario, target: str) -> Difference | None:
    """The main one of them, which says whether it may also go as recorded."""
    return next(iter(differences(scenario, target)), None)


def missing(scenario: Scenario) -> str | None:
    """What a scenario needs that we do not have (yet), so that it cannot be played; None if it can."""
    if scenario.qpid_outcome == "RELEASED":
        return "a limit that only turns this consumer away: here a message over its limit is a dead letter"
    return "the failover transport" if scenario.connection.get("failover") else None
