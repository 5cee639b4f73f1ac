"""Says what will happen to letters that are replayed and fail again: how often each is tried, how long, and then."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from redelivery.client.entry.sync import Connection
from redelivery.model.destinations import Destination
from redelivery.model.errors import InvalidDestinationError
from redelivery.operate.doctor.doctor import own_rules
from redelivery.operate.letters.replaying.planned import PlannedReplay
from redelivery.operate.simulate import LISTED, Simulation, attempts_of, simulate
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.files.durations import seconds_text, time_text
from redelivery.policies.redelivery import NO_LIMIT, RedeliveryPolicy

_OWN: Final = "the policy that they name"


@dataclass(frozen=True, slots=True)
class Forecast:
    """The fate of ``letters`` letters that are sent to ``target``, and fail each time. ``str()`` says it.

    ``by``: the rules that say so; None: nothing is known, nor is what follows. ``attempts``: deliveries to the
    application, None without an end. ``seconds``: from the first to the last of them, ``least`` and ``most`` its
    bounds; of more than 200 up to the 200th. ``ends``: where each is then; ``back``: on the queue that it comes from.
    """

    target: Destination | None
    letters: int
    by: str | None = None
    attempts: int | None = None
    seconds: float | None = None
    least: float | None = None
    most: float | None = None
    ends: str | None = None
    back: bool = False

    def __str__(self) -> str:
        if self.by is None:
            return (
                "how often each will be tried is not known: name the broker's configuration by --config, or the "
                "client's by --client"
            )
        if self.attempts is None:
            return "each will be tried without an end, until somebody handles it"
        times = "once" if self.attempts == 1 else f"{self.attempts} times{self._lasting()}"
        return f"each will be tried {times}, then {self._then()}"

    def _lasting(self) -> str:
        if not self.seconds or self.least is None or self.most is None or self.attempts is None:
            return " at once"
        more = "more than " if self.attempts > LISTED else ""
        if self.most - self.least < 0.002 * self.attempts:  # a millisecond each, from rounding
            return f" over {more}{time_text(self.seconds)}"
        return f" over {more}{seconds_text(self.least)} to {seconds_text(self.most)}"

    def _then(self) -> str:
        if self.back:
            return "be back here"
        ends = str(self.ends)
        if ends.startswith(("removed", "kept")):
            return f"be {ends}"
        return f"be on {ends}" if ends.startswith("the broker's ") else f"be on {ends}, and not here"


def forecast(
    connection: Connection,
    queue: Destination,
    letters: Iterable[PlannedReplay],
    *,
    to: Destination | None = None,
    broker: BrokerPolicies | None = None,
    client: BrokerPolicies | None = None,
) -> tuple[Forecast, ...]:
    """Say what will happen to letters of a queue that are sent to their targets; those of most letters first.

    ``to``: the target instead of where each came from. ``broker``: of its configuration; None: what the broker itself
    reports, where a letter names no policy. ``client``: of the URL or file of the client that receives them; None: the
    policies that the letters name.
    """
    counted: Counter[tuple[Destination | None, RedeliveryPolicy | None]] = Counter()
    for each in letters:
        counted[each.target, each.policy] += 1
    if not counted:  # nobody has looked
        counted[to, None] = 0
    unknown = {target for target, policy in counted if policy is None and target is not None}
    if broker is None and client is None and unknown:
        broker = own_rules(connection, tuple(unknown), [])
    found = [
        _forecast(queue, target, policy, count, broker, client, same=to is None)
        for (target, policy), count in counted.most_common()
    ]
    return tuple(found)


def lines(found: tuple[Forecast, ...], most: int = 5) -> list[str]:
    """The lines for people: one where the same is said of all of them."""
    texts = list(dict.fromkeys(map(str, found)))
    if len(texts) == 1:
        return texts
    more = [f"… and {len(found) - most} more targets"] if len(found) > most else []
    return [f"{each.letters} to {each.target}: {each}" for each in found[:most]] + more


def _forecast(
    queue: Destination,
    target: Destination | None,
    policy: RedeliveryPolicy | None,
    count: int,
    broker: BrokerPolicies | None,
    client: BrokerPolicies | None,
    *,
    same: bool,
) -> Forecast:
    if target is None:
        return Forecast(target, count)
    try:
        if broker is not None:
            said = simulate(broker, target, policy if client is None else client)
        elif client is not None:
            said = simulate(client, target)
        elif policy is not None:
            return _by_policy(queue, target, policy, count)
        else:
            return Forecast(target, count)
    except InvalidDestinationError:  # which these rules cannot name
        return Forecast(target, count)
    named = [each.path for each in (broker, client) if each is not None]
    if client is None and policy is not None:
        named.append(_OWN)
    return _by_simulation(queue, target, said, count, ", ".join(named), same=same, only_client=broker is None)


def _by_policy(queue: Destination, target: Destination, policy: RedeliveryPolicy, count: int) -> Forecast:
    """Expect what happened before: they are here because of this policy."""
    if policy.maximum_redeliveries == NO_LIMIT:
        return Forecast(target, count, _OWN)
    last = attempts_of(policy)[-1]
    attempts = policy.maximum_redeliveries + 1
    return Forecast(target, count, _OWN, attempts, last.at, last.least, last.most, queue.name, back=True)


def _by_simulation(
    queue: Destination, target: Destination, said: Simulation, count: int, by: str, *, same: bool, only_client: bool
) -> Forecast:
    if said.total is None:
        return Forecast(target, count, by)
    last = said.attempts[-1]
    # A client that gives up by itself copies them to where its strategy says: to where they were copied before.
    alone = only_client or (said.wins == "client" and said.ends != said.rules.fate)
    back = (alone and same) or _is_named(queue, said.rules.dead_letter_queues) or said.ends.split(" ")[0] == queue.name
    ends = queue.name if back else said.ends
    return Forecast(target, count, by, said.total, last.at, last.least, last.most, ends, back=back)


def _is_named(queue: Destination, names: Iterable[str]) -> bool:
    return queue.name in {each.rpartition("::")[2].removeprefix("jms.queue.") for each in names}
