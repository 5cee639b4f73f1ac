"""Rules of every broker for hypothesis: what a file of theirs could hold."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from hypothesis import strategies as st

from redelivery.model.destinations import Queue, Topic
from redelivery.policies.brokers.artemis.bound import BoundQueue
from redelivery.policies.brokers.artemis.names import HORNETQ_NAMES
from redelivery.policies.brokers.artemis.rules import AddressEntry, ArtemisRules
from redelivery.policies.brokers.broker_j.rules import (
    AutoCreation,
    BrokerJHost,
    BrokerJLevel,
    BrokerJQueue,
    BrokerJRules,
)
from redelivery.policies.brokers.classic.rules import (
    ClassicRules,
    DeadLetterRules,
    DiscardingPlugin,
    PolicyEntry,
    RedeliveryEntry,
    RedeliveryPlugin,
)
from redelivery.policies.brokers.clients.url.rules import ClientEntry, ClientRules
from redelivery.policies.brokers.kubernetes import image
from redelivery.policies.brokers.qpid.rules import QpidHost, QpidLevel, QpidRules
from redelivery.policies.brokers.rabbitmq.rules import RabbitRules
from redelivery.policies.brokers.rabbitmq.values import (
    RabbitBinding,
    RabbitExchange,
    RabbitHost,
    RabbitLevel,
    RabbitPolicy,
    RabbitQueue,
)
from redelivery.policies.brokers.wildfly.rules import WildFlyRules
from redelivery.policies.dead_letters import (
    DiscardingDeadLetterStrategy,
    IndividualDeadLetterStrategy,
    SharedDeadLetterStrategy,
)
from redelivery.policies.destinations.address_settings import AddressSettings
from redelivery.policies.prefetch import PrefetchPolicy
from redelivery.policies.redelivery import RedeliveryPolicy

WORDS = st.text("aZ9_-é<>&\"'", min_size=1, max_size=5).filter(lambda word: word not in (">", "<"))
NAMES = st.lists(WORDS, min_size=1, max_size=3).map(".".join)
PLAIN = st.from_regex(r"[a-z]{1,5}(-[a-z0-9]{1,3})?", fullmatch=True).filter(lambda name: name not in ("name", "queue"))
PATTERNS = st.tuples(st.lists(PLAIN | st.just("*"), max_size=2), PLAIN | st.sampled_from(["*", ">"])).map(
    lambda parts: ".".join([*parts[0], parts[1]])
)
FLAGS = st.booleans()
SECONDS = st.integers(0, 10**9).map(lambda milliseconds: milliseconds / 1000)
EXPIRY = SECONDS | st.just(-1.0)
COUNTS = st.integers(0, 1000)


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


def some(**values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A dict with any of these keys."""
    return st.fixed_dictionaries({}, optional=values)


_SETTINGS: dict[str, st.SearchStrategy[Any]] = {
    "redelivery_delay": SECONDS,
    "redelivery_delay_multiplier": st.floats(0, 10),
    "redelivery_collision_avoidance_factor": st.floats(0, 1),
    "max_redelivery_delay": SECONDS,
    "max_delivery_attempts": st.integers(-1, 100),
    "dead_letter_address": NAMES,
    "send_to_dla_on_no_route": FLAGS,
    "auto_create_dead_letter_resources": FLAGS,
    "dead_letter_queue_prefix": WORDS | st.just(""),
    "dead_letter_queue_suffix": WORDS | st.just(""),
    "expiry_address": NAMES,
    "expiry_delay": EXPIRY,
    "min_expiry_delay": EXPIRY,
    "max_expiry_delay": EXPIRY,
    "no_expiry": FLAGS,
    "auto_create_expiry_resources": FLAGS,
    "expiry_queue_prefix": WORDS | st.just(""),
    "expiry_queue_suffix": WORDS | st.just(""),
}
_HORNETQ = {field: _SETTINGS[field] for field, _ in HORNETQ_NAMES.values()}


def _entries(settings: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[tuple[AddressEntry, ...]]:
    entry = st.builds(
        AddressEntry,
        PATTERNS.map(lambda pattern: pattern.replace(">", "#")),
        some(**settings).map(lambda values: AddressSettings(**values)),
    )
    return st.lists(entry, max_size=4).map(tuple)


_QUEUES = st.lists(
    st.builds(BoundQueue, NAMES, NAMES, st.sampled_from(["anycast", "multicast"]), maybe(WORDS)),
    max_size=4,
    unique_by=lambda each: (each.address, each.name),  # of one name Artemis has one
).map(lambda queues: tuple(sorted(queues, key=lambda each: (each.address, each.routing, each.name))))

ARTEMIS = st.builds(
    ArtemisRules,
    entries=_entries(_SETTINGS),
    queues=_QUEUES,
    persist_delivery_count_before_delivery=FLAGS,
    max_redelivery_records=maybe(st.integers(-1, 10)),
)
# A setting is a property: no file has an entry without any, or two of one match, or two queues of one name.
ARTEMIS_PROPERTIES = ARTEMIS.map(
    lambda rules: replace(
        rules,
        entries=tuple(each for each in rules.counting if each.fields_set),
        queues=tuple({(each.address, each.name): each for each in rules.queues}.values()),
    )
)


# The image makes its queues in any case, and without a setting its own count.
def _of_image(rules: ArtemisRules) -> ArtemisRules:
    queues = {(each.address, each.name): each for each in (*rules.queues, *image.QUEUES)}.values()
    order = sorted(queues, key=lambda each: (each.address, each.routing, each.name))
    return replace(rules, entries=rules.counting or image.ENTRIES, queues=tuple(order))


KUBERNETES = ARTEMIS.map(_of_image)
HORNETQ = st.builds(
    ArtemisRules,
    dialect=st.just("hornetq"),
    entries=_entries(_HORNETQ),
    queues=_QUEUES.map(lambda queues: tuple(each for each in queues if each.routing == "anycast")),
    persist_delivery_count_before_delivery=FLAGS,
)

WILDFLY = st.builds(
    lambda rules, **more: WildFlyRules(
        **{each.name: getattr(rules, each.name) for each in fields(rules) if each.init} | {"entries": rules.counting},
        **more,
    ),
    HORNETQ | ARTEMIS.map(lambda rules: replace(rules, entries=(), max_redelivery_records=None)),
    server=WORDS,
    topics=st.lists(WORDS, max_size=2, unique=True).map(tuple),
)

_SHARED = some(process_expired=FLAGS, process_non_persistent=FLAGS, expiration=SECONDS)
_STRATEGIES = (
    st.builds(
        lambda options, queue: SharedDeadLetterStrategy(**options, **({"dead_letter_queue": queue} if queue else {})),
        _SHARED,
        maybe(st.sampled_from([Queue("Dead"), Topic("Dead.x"), Queue("jms.queue.DLQ")])),
    )
    | st.builds(
        lambda options, more: IndividualDeadLetterStrategy(**options, **more),
        _SHARED,
        some(
            queue_prefix=PLAIN,
            topic_prefix=PLAIN,
            queue_suffix=PLAIN,
            topic_suffix=PLAIN,
            use_queue_for_queue_messages=FLAGS,
            use_queue_for_topic_messages=FLAGS,
        ),
    )
    | _SHARED.map(lambda options: DiscardingDeadLetterStrategy(**options))
)
_DEAD_LETTERS = st.builds(
    DeadLetterRules,
    _STRATEGIES,
    enable_audit=FLAGS,
    max_producers_to_audit=COUNTS,
    max_audit_depth=COUNTS,
    destination_per_durable_subscriber=FLAGS,
)
_KEYS = st.tuples(st.sampled_from(["queue://", "topic://"]), PATTERNS).map("".join)
_POLICY_ENTRIES = st.builds(
    PolicyEntry,
    _KEYS,
    maybe(_DEAD_LETTERS),
    persist_jms_redelivered=maybe(FLAGS),
    send_duplicate_from_store_to_dlq=maybe(FLAGS),
)


def _policies(least: int) -> st.SearchStrategy[RedeliveryPolicy]:
    delays = st.integers(least, 10**9).map(lambda milliseconds: milliseconds / 1000)
    return some(
        maximum_redeliveries=st.integers(-1, 100),
        initial_redelivery_delay=delays,
        redelivery_delay=delays,
        use_exponential_back_off=FLAGS,
        back_off_multiplier=st.floats(0, 100),
        maximum_redelivery_delay=SECONDS,
        use_collision_avoidance=FLAGS,
        collision_avoidance_percent=st.integers(0, 100),
        pre_dispatch_check=FLAGS,
    ).map(lambda values: RedeliveryPolicy(pre_dispatch_check_set=True, **values))


def _unique(entries: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(entries, max_size=4, unique_by=lambda each: each.pattern).map(tuple)


_REDELIVERY = st.builds(
    RedeliveryPlugin,
    _unique(st.builds(RedeliveryEntry, _KEYS, _policies(1000))),
    maybe(_policies(1000).map(lambda policy: RedeliveryEntry(">", policy))),
    fallback_to_dead_letter=FLAGS,
    send_to_dlq_if_max_retries_exceeded=FLAGS,
)
_DISCARDING = st.builds(
    DiscardingPlugin,
    FLAGS,
    FLAGS,
    FLAGS,
    st.lists(st.sampled_from(["orders", ".*[0-9]{3}", "a|b"]), max_size=3).map(tuple),
    COUNTS,
)
CLASSIC = st.builds(
    ClassicRules,
    _unique(_POLICY_ENTRIES),
    maybe(_POLICY_ENTRIES.map(lambda entry: PolicyEntry(">", entry.dead_letters))),
    st.lists(_REDELIVERY | _DISCARDING, max_size=2).map(tuple),
    st.just(True),
)

_LEVELS = st.builds(QpidLevel, PLAIN, maybe(FLAGS), maybe(COUNTS))
QPID = st.builds(
    QpidRules,
    st.builds(QpidLevel, st.just("broker"), maybe(FLAGS), maybe(COUNTS)),
    st.lists(st.builds(QpidHost, _LEVELS, st.lists(_LEVELS, max_size=3).map(tuple)), max_size=3).map(tuple),
    maybe(PLAIN),
    exchange_suffix=PLAIN,
    queue_suffix=PLAIN,
)

_BINDINGS = {"maximum_delivery_attempts": maybe(COUNTS), "maximum_message_ttl": maybe(SECONDS)}
_CONTEXTS = st.builds(BrokerJLevel, alternate=maybe(NAMES), expiry_policy=maybe(st.just("DELETE")), **_BINDINGS)
_QUEUE_LEVELS = st.builds(
    BrokerJLevel,
    alternate=maybe(NAMES | st.just("")),
    expiry_policy=maybe(st.just("ROUTE_TO_ALTERNATE")),
    minimum_message_ttl=maybe(SECONDS),
    **_BINDINGS,
)
_HOSTS = st.builds(
    BrokerJHost,
    PLAIN,
    st.lists(st.builds(BrokerJQueue, NAMES, _QUEUE_LEVELS, _CONTEXTS), max_size=3).map(tuple),
    st.lists(st.builds(AutoCreation, st.sampled_from([".*", r"a\..*"]), _QUEUE_LEVELS), max_size=2).map(tuple),
    _CONTEXTS,
)
BROKER_J = st.lists(_HOSTS, max_size=3, unique_by=lambda each: each.name).flatmap(
    lambda hosts: st.builds(BrokerJRules, st.just(tuple(hosts)), st.just(hosts[0].name if hosts else None), _CONTEXTS)
)

_RABBIT = st.builds(
    RabbitLevel,
    dead_letter_exchange=maybe(NAMES | st.just("")),
    dead_letter_routing_key=maybe(NAMES),
    dead_letter_strategy=maybe(st.just("at-least-once")),
    delivery_limit=maybe(st.integers(-1, 100)),
    message_ttl=maybe(SECONDS),
    delayed_retry_type=maybe(st.just("all")),
    delayed_retry_min=maybe(SECONDS),
    delayed_retry_max=maybe(SECONDS),
    expires=maybe(SECONDS),
    max_length=maybe(COUNTS),
    max_length_bytes=maybe(COUNTS),
    overflow=maybe(st.sampled_from(["drop-head", "reject-publish", "reject-publish-dlx"])),
    alternate_exchange=maybe(NAMES),
)
_VHOSTS = st.just("/") | NAMES
_RABBIT_POLICIES = st.builds(
    RabbitPolicy,
    NAMES,
    st.sampled_from([".*", r"^q\."]),
    _RABBIT,
    apply_to=st.sampled_from(["all", "queues", "quorum_queues"]),
    priority=st.integers(-5, 5),
    operator=FLAGS,
    others=st.sampled_from([(), (("queue-mode", "lazy"),), (("ha-params", (1, 2)), ("max-age", "7D"))]),
)
_ARGUMENTS = st.sampled_from([(), (("x-match", "all"), ("kind", 1)), (("table", (("a", True),)),)])
RABBITMQ = st.builds(
    RabbitRules,
    st.lists(_RABBIT_POLICIES, max_size=3).map(lambda each: tuple(sorted(each, key=lambda policy: policy.operator))),
    st.lists(st.builds(RabbitQueue, NAMES, st.sampled_from(["classic", "quorum"]), _RABBIT), max_size=3).map(tuple),
    st.lists(
        st.builds(RabbitBinding, NAMES, NAMES, NAMES, _VHOSTS, to_exchange=FLAGS, arguments=_ARGUMENTS), max_size=3
    ).map(tuple),
    maybe(st.just("4.0.1")),
    maybe(
        st.lists(
            st.builds(RabbitExchange, NAMES, st.sampled_from(["direct", "topic", "x-random"]), _VHOSTS, maybe(NAMES)),
            max_size=3,
        ).map(tuple)
    ),
    st.lists(st.builds(RabbitHost, _VHOSTS, maybe(st.sampled_from(["classic", "quorum"]))), max_size=2).map(tuple),
)
CLIENT = st.builds(
    ClientRules,
    _policies(0),
    maybe(
        st.builds(PrefetchPolicy, queue=COUNTS, topic=maybe(COUNTS), durable_topic=maybe(COUNTS), browser=maybe(COUNTS))
    ),
    maybe(FLAGS),
)
SPRING = st.builds(replace, CLIENT, entries=_unique(st.builds(ClientEntry, _KEYS, _policies(0)))) | st.just(
    ClientRules(returning=True)
)

SPRING_BOOT = CLIENT | st.just(ClientRules(returning=True))
_IN_CHART = {
    name: PLAIN if name.endswith(("address", "prefix", "suffix")) else each for name, each in _SETTINGS.items()
}
HELM = st.builds(
    ArtemisRules,
    entries=_entries(_IN_CHART),
    queues=st.lists(
        st.builds(BoundQueue, PLAIN, PLAIN, st.sampled_from(["anycast", "multicast"])),
        max_size=4,
        unique_by=lambda each: each.address,
    ).map(lambda queues: tuple(sorted(queues, key=lambda each: each.address))),
    persist_delivery_count_before_delivery=FLAGS,
    max_redelivery_records=maybe(st.integers(-1, 10)),
)

RULES: dict[str, st.SearchStrategy[Any]] = {
    "artemis": ARTEMIS,
    "artemis_properties": ARTEMIS_PROPERTIES,
    "kubernetes": KUBERNETES,
    "hornetq": HORNETQ,
    "wildfly": WILDFLY,
    "activemq": CLASSIC,
    "qpid": QPID,
    "broker_j": BROKER_J,
    "rabbitmq": RABBITMQ,
    "uri": CLIENT,
    "spring_boot": SPRING_BOOT,
    "helm": HELM,
    "spring": SPRING,
}
