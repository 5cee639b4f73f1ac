"""Where we differ from the Java client, and why: one table. What happens instead stands in courses.txt.

`test_traces` holds every entry to its word: the scenario takes exactly the course stated there, and that course differs
from the recorded ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tests.traces.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Difference:
    """``why``: a key of `REASONS`. ``instead``: what we do. ``targets``: where; none named: everywhere.

    ``fault``: the number of the fault of the Java client that is not copied.
    """

    why: str
    instead: str
    targets: tuple[str, ...] = ()
    fault: int | None = None


REASONS: Final[Mapping[str, str]] = {
    "fault": "a fault of the Java client that is not copied",
    "rule": "a rule of ours that the documentation states",
    "option": "an option of the OpenWire client that has no counterpart; played without it",
    "stomp": "STOMP carries less",
    "embedded": "the embedded broker",
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
        "at close one consumer's deliveries are counted: what another was given comes back as a new message",
        "everything that was handed out comes back with JMSRedelivered",
    ),
    8: ("maximumRedeliveries -2 dead-letters every message unseen", "ConfigError; a negative delay means at once"),
    9: (
        "after a lost connection, prefetched messages that nobody saw are over a limit of 0 and are dead-lettered",
        "the broker's count is not a limit where it charges unseen messages, unless preDispatchCheck is asked for",
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

_OPTION = "option"
_EMBEDDED = ("vm",)


def _fault(number: int, instead: str, *targets: str) -> tuple[Difference, ...]:
    return (Difference("fault", instead, targets, number),)


def _rule(instead: str, *targets: str) -> tuple[Difference, ...]:
    return (Difference("rule", instead, targets),)


_WAITS = "the wait goes on; order and acknowledgements are kept"
_WINDOW = "a transaction gets every message, whatever the prefetch"
_OWN_POISON = "each message is acknowledged by itself and poisoned by its own count"
_ON_TIME = "nothing comes when the time is over; the message comes after its delay"
_FAILED = "the message is redelivered by the policy, as after any exception"
_LISTENING = "while a listener is set, only its callbacks may use the session (JMS): IllegalStateError"
_SEEN = "it knows which messages were handed out; the others come back as new ones"

DIFFERENCES: Final[Mapping[str, tuple[Difference, ...]]] = {
    "stop-start-during-delay": _fault(1, _WAITS),
    "stop-start-during-delay-client": _fault(1, _WAITS),
    "stop-start-during-delay-commit-each": _fault(1, _WAITS),
    "stop-start-during-delay-poison": _fault(1, _WAITS),
    "stop-rollback-start": _fault(1, _WAITS),
    "listener-set-during-delay": _fault(2, _WAITS),
    "listener-set-on-other-consumer-breaks-wait": _fault(2, "qa waits, qb goes on"),
    "nonblocking-innocent-poisoned": _fault(3, _OWN_POISON),
    "client-poison-nonblocking": _fault(3, _OWN_POISON),
    "client-ack-out-of-order-nonblocking": _fault(3, _OWN_POISON),
    "listener-optimize-acknowledge": _fault(4, "played without the option, which is refused by name: nothing is lost"),
    "prefetch-0-rollback": _fault(5, _ON_TIME),
    "prefetch-0-nowait-during-delay": _fault(5, _ON_TIME),
    "second-consumer-during-delay": _fault(7, "every message that was handed out comes back with JMSRedelivered"),
    "kill-prefetched-poisons-unseen": _fault(9, "only what was handed out is over the limit"),
    "batch-prefetch-1": _fault(10, _WINDOW),
    "batch-prefetch-1-rollback-one": _fault(10, _WINDOW),
    "listener-error": _fault(11, _FAILED),
    "listener-error-last": _fault(11, _FAILED),
    "listener-close-throw-inside": _fault(11, "it goes back to the broker with the close"),
    "topic-dups-ok-listener-throw": _fault(11, _FAILED),
    "individual-stale-ack-after-recover": _fault(12, "a stale object acknowledges nothing"),
    "prefetch-0-listener": _rule("a prefetch of 0 works as 1, so a listener may have it"),
    "client-ack-after-consumer-close": _rule("closing a consumer takes nothing from the session's acknowledge() (JMS)"),
    "client-consumer-close-reopen": _rule("the close waits for the acknowledgement; the next consumer gets the rest"),
    "individual-listener-throw": _rule(_LISTENING),
    "listener-set-on-other-consumer-during-delay": _rule(_LISTENING),
    "kill-commit": _rule("a lost connection is told apart from a closed one: ConnectionLostError"),
    "policy-star-middle-versus-last": _rule("word by word a literal goes before `*`, so `a.b.*` wins, not `a.*.c`"),
    "policy-wildcard-consumer": _rule("the policy is that of the queue that a message came from"),
    "priority-supported-late-high": (Difference(_OPTION, "a redelivered message comes first, whatever its priority"),),
    "priority-supported-batch-rollback": (Difference(_OPTION, "in the broker's order; poisoned by its own count"),),
    "expired-check-off": (Difference(_OPTION, "an expired message is never shown"),),
    "dups-ok-receive-kill": (Difference("embedded", _SEEN, _EMBEDDED),),
    "kill-prefetched": (Difference("embedded", _SEEN, _EMBEDDED),),
    "selector-delivery-count": (Difference("embedded", "it has no selectors: UnsupportedError", _EMBEDDED),),
    "composite-send-poison": (Difference("embedded", "it has no composite queues: one queue of that name", _EMBEDDED),),
}


def difference(scenario: Scenario, target: str) -> Difference | None:
    """What the table says of a scenario at a target."""
    for entry in DIFFERENCES.get(scenario.id, ()):
        if not entry.targets or target in entry.targets:
            return entry
    return None


def missing(scenario: Scenario) -> str | None:
    """What a scenario needs that we do not have (yet), so that it cannot be played; None if it can."""
    if scenario.client != "activemq":
        return "recorded with Qpid JMS over AMQP, whose rules are others: no delay, limits checked at arrival"
    if "classic" not in scenario.brokers:
        return "recorded on Artemis over OpenWire"
    if scenario.does("durable"):
        return "durable subscriptions"
    if scenario.does("browse"):
        return "queue browsers"
    return "the failover transport" if scenario.connection.get("failover") else None
