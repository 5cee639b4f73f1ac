"""Plays a scenario through the public API and records what happened as the recordings do."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

from tests.traces.courses import AT_ONCE
from tests.traces.places import Place
from tests.traces.recorder import Recorder, described
from tests.traces.scenario import Scenario, Step, Trace

import redelivery
from redelivery import JMSError, RedeliveryPolicy, RedeliveryPolicyMap

WAIT_MS = 3000  # for listener calls, where a step does not say how long
PATIENCE = 10.0  # seconds for what is sure to come: a slow machine makes it late, not absent


class JavaError(BaseException):
    """What `java.lang.Error` is to a Java listener: not an Exception, so that ordinary handlers pass it on."""


class Player(Recorder):
    """One execution of one scenario at one place; `play` once.

    ``right``: the courses that are right there. What comes in all of them is waited for longer than a step says.
    """

    def __init__(self, scenario: Scenario, place: Place, right: Sequence[Trace]) -> None:
        super().__init__(place, scenario.show)
        self.scenario = scenario
        self._sure = _sure(right)
        self._calls = min((sum(event["op"] == "deliver" for event in trace.events) for trace in right), default=0)
        self._incomplete = {event.get("step") for trace in right for event in trace.events if event["op"] == "wait"}
        self.heard: list[JMSError] = []
        self.handles: dict[str, Any] = {}
        self.connections: list[Any] = []
        self.client_ids: dict[Any, str] = {}  # of sessions
        self.durable: dict[tuple[str, str], None] = {}  # subscriptions: client id and name
        self.attempts: Counter[str] = Counter()
        self.delivered = 0
        self.background: threading.Thread | None = None

    def play(self) -> Trace:
        """Run the steps, close all connections in the order in which they were opened, and read what is left.

        Without a connection, session or consumer that it needs the scenario ends early.
        """
        try:
            for step in self.scenario.steps:
                if not self._do(step) and step.do in ("connect", "session", "consumer"):
                    break
        finally:
            for connection in self.connections:
                connection.close()
            if self.background is not None:
                self.background.join()
            self._unsubscribe()
        queues = dict.fromkeys(
            name for trace in self.scenario.traces for name in trace.end if not name.startswith("subscription ")
        )
        return Trace(tuple(self.events), self.place.left(tuple(queues)), len(self.heard))

    def _unsubscribe(self) -> None:
        for client_id, name in self.durable:
            with redelivery.connect(self.place.url({"jms.clientID": client_id})) as connection:
                connection.session().unsubscribe(name)

    def _do(self, step: Step) -> bool:
        with self.timed(step.get("ms", 0) + step.get("linger", 0)):
            try:
                getattr(self, "do_" + step.do)(step)
            except JMSError as error:
                self.record(step, error=described(error))
                return False
        return True

    # -- connections, sessions, consumers

    def do_connect(self, step: Step) -> None:
        wanted = {**self.scenario.connection, **step.fields}
        policy = self._policy(wanted)
        params = {f"jms.{name}": wanted[key] for key, name in _PARAMS.items() if key in wanted}
        if "clientId" in wanted:
            params["jms.clientID"] = self.place.physical(wanted["clientId"])
        policies = None
        if "policies" in wanted:
            policies = RedeliveryPolicyMap(self._policies(wanted["policies"]), default=policy_of(policy))
        else:
            params |= {f"jms.redeliveryPolicy.{name}": value for name, value in policy.items()}
        url = self.place.url(
            {name: _text(value) for name, value in params.items()}, killable=self.scenario.does("kill")
        )
        connection = redelivery.connect(
            url,
            redelivery_policies=policies,
            dead_letter_strategy=self.place.dead_letter_strategy,
            exception_listener=self.heard.append,
            start=wanted.get("start", True),
        )
        self.connections.append(connection)
        self.handles[step.get("as", "c")] = connection

    def _policy(self, wanted: Mapping[str, Any]) -> Mapping[str, object]:
        policy: Mapping[str, object] = wanted.get("redelivery", {})
        if self.scenario.client != "qpid":
            return policy
        # Qpid JMS has no delay, and no limit unless one is asked for.
        return {"maximumRedeliveries": policy.get("maxRedeliveries", -1), **AT_ONCE}

    def _policies(self, entries: list[Mapping[str, object]]) -> dict[str, RedeliveryPolicy]:
        policies = {}
        for entry in entries:
            scheme = "topic" if "topic" in entry else "queue"
            fields = {name: value for name, value in entry.items() if name not in ("queue", "topic", "put")}
            for name in str(entry[scheme]).split(","):  # a composite key of Java is an entry for each name
                policies[f"{scheme}://{self.place.physical(name)}"] = policy_of(fields)
        return policies

    def do_session(self, step: Step) -> None:
        connection = self.handles[step.get("on", "c")]
        session = self.handles[step.get("as", "s")] = connection.session(step.get("mode"))
        self.client_ids[session] = connection.client_id

    def do_consumer(self, step: Step) -> None:
        selector, session = step.get("selector"), self._session(step)
        if "durable" in step.fields:
            self.durable[self.client_ids[session], step.get("durable")] = None
            consumer = session.durable_consumer(self._destination(step.get("from")), step.get("durable"))
        else:
            consumer = session.consumer(
                self._destination(step.get("from")), selector=self.place.selector(selector) if selector else None
            )
        self.handles[step.get("as", "k")] = consumer

    def do_start(self, step: Step) -> None:
        self.handles[step.get("of", "c")].start()

    def do_stop(self, step: Step) -> None:
        self.handles[step.get("of", "c")].stop()
        self.record(step)

    def do_kill(self, step: Step) -> None:
        self.place.kill(self.handles[step.get("of", "c")])
        self.record(step)

    def do_close(self, step: Step) -> None:
        name = step.get("of", "c")
        self.handles[name].close()
        self.record(step, of=name)

    # -- messages

    def do_send(self, step: Step) -> None:
        destination = self._destination(step.get("to"))
        if "in" in step.fields:
            producer = self.handles[step.get("in")].producer(destination)
            for message in step.get("messages"):
                self._send(producer, message)
            return
        with redelivery.connect(self.place.url({})) as connection:
            producer = connection.session("auto").producer(destination)
            for message in step.get("messages"):
                self._send(producer, message)

    def _send(self, producer: Any, message: str | Mapping[str, Any]) -> None:
        fields: Mapping[str, Any] = {"body": message} if isinstance(message, str) else message
        properties = {**fields.get("properties", {}), "ref": self.place.ref}
        producer.send(
            fields["body"],
            group_id=properties.pop("JMSXGroupID", None),
            properties=properties,
            persistent=fields.get("persistent", True),
            priority=fields.get("priority", 4),
            ttl=fields["ttl"] / 1000 if "ttl" in fields else None,
        )

    def do_forward(self, step: Step) -> None:
        producer = self.handles[step.get("in")].producer(self._destination(step.get("to")))
        producer.send(self.messages[step.get("message")])

    def do_receive(self, step: Step) -> None:
        self.record_message(step, self._receive(step), **self._named(step))

    def do_receiveNoWait(self, step: Step) -> None:
        self.record_message(step, self._consumer(step).receive_nowait(), **self._named(step))

    def do_drain(self, step: Step) -> None:
        while True:
            message = self._receive(step)
            self.record_message(step, message, op="receive", **self._named(step))
            if message is None:
                return

    def _receive(self, step: Step) -> Any:
        timeout = step.get("timeout") / 1000
        if self._sure[step.path] > 0:
            self._sure[step.path] -= 1
            timeout = max(timeout, PATIENCE)
        with self.within(timeout):
            return self._consumer(step).receive(timeout=timeout)

    def do_browse(self, step: Step) -> None:
        with self._session(step).browser(self._destination(step.get("queue"))) as browser:
            seen = [f"{message.body} count {message.delivery_count}" for message in browser]
        fields: dict[str, Any] = {"messages": seen} if seen else {}
        self.record(step, **fields)

    def do_receiveInBackground(self, step: Step) -> None:
        def receive() -> None:
            self.record_message(step, self._receive(step), op="receive", background=True)

        self.background = threading.Thread(target=receive)
        self.background.start()

    def do_join(self, step: Step) -> None:
        assert self.background is not None, f"step {step.path}: nothing receives in the background"
        self.background.join()
        self.background = None

    def do_acknowledge(self, step: Step) -> None:
        name = step.get("message")
        try:
            self.messages[name].acknowledge()
        except JMSError as error:
            self.record(step, message=name, error=described(error))
        else:
            self.record(step, message=name)

    def do_commit(self, step: Step) -> None:
        self._session(step).commit()
        self.record(step)

    def do_rollback(self, step: Step) -> None:
        self._session(step).rollback()
        self.record(step)

    def do_recover(self, step: Step) -> None:
        self._session(step).recover()
        self.record(step)

    # -- listeners

    def do_listen(self, step: Step) -> None:
        name = step.get("from", "k")
        script: Mapping[str, str | list[str]] = step.get("script")

        def on_message(message: Any) -> None:
            self.attempts[message.body] += 1
            attempt = self.attempts[message.body]
            actions = script.get(message.body, script.get("*", "ok"))
            action = actions if isinstance(actions, str) else actions[min(attempt, len(actions)) - 1]
            then = {} if action == "ok" else {"then": action}
            self.record_message(None, message, op="deliver", to=name, **then)
            try:
                for part in action.split("+"):
                    self._act(part, message, attempt, step, name)
            finally:
                with self.changed:
                    self.delivered += 1
                    self.changed.notify_all()

        self.handles[name].listen(on_message)

    def _act(self, action: str, message: Any, attempt: int, step: Step, consumer: str) -> None:
        text = f"fail {message.body} #{attempt}"
        if action == "throw":
            raise RuntimeError(text)
        if action == "error":
            raise JavaError(text)
        calls: Mapping[str, Callable[[], object]] = {
            "ok": lambda: None,
            "ack": message.acknowledge,
            "commit": lambda: self._session(step).commit(),
            "rollback": lambda: self._session(step).rollback(),
            "recover": lambda: self._session(step).recover(),
            "close": lambda: self.handles[consumer].close(),
        }
        calls[action]()

    def do_unlisten(self, step: Step) -> None:
        self._consumer(step).listen(None)

    def do_wait(self, step: Step) -> None:
        wanted = step.get("deliveries")
        if step is self.scenario.steps[-1]:  # a course of ours may have more of them than Java's
            wanted = max(wanted, self._calls)
        with self.changed:
            timeout = step.get("timeout", WAIT_MS) / 1000
            if step.path not in self._incomplete:
                timeout = max(timeout, PATIENCE)
            there = self.changed.wait_for(lambda: self.delivered >= wanted, timeout)
            if not there:
                self.record(step, deliveries=self.delivered, wanted=wanted)
        time.sleep(step.get("linger", 0) / 1000)

    def do_sleep(self, step: Step) -> None:
        time.sleep(step.get("ms") / 1000)

    # -- names

    def _session(self, step: Step) -> Any:
        return self.handles[step.get("on", "s")]

    def _consumer(self, step: Step) -> Any:
        return self.handles[step.get("from", "k")]

    def _named(self, step: Step) -> dict[str, str]:
        return {"from": step.get("from")} if "from" in step.fields else {}

    def _destination(self, name: str) -> str:
        if name.startswith("topic:"):
            return "topic://" + self.place.physical(name.removeprefix("topic:"))
        return "queue://" + self.place.physical(name)


_PARAMS = {"prefetch": "prefetchPolicy.all", "nonBlockingRedelivery": "nonBlockingRedelivery"}


def _sure(right: Sequence[Trace]) -> Counter[str]:
    """How many messages a step receives in every one of these courses, by its path."""
    received = [
        Counter(event["step"] for event in trace.events if event["op"] == "receive" and event.get("body") is not None)
        for trace in right
    ]
    return reduce(Counter.__and__, received) if received else Counter()


def policy_of(fields: Mapping[str, object]) -> RedeliveryPolicy:
    """A policy by ActiveMQ's names; what is not named has its default."""
    return RedeliveryPolicy.from_activemq({name: _text(value) for name, value in fields.items()})


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
