"""The options that say where messages come from and go to: the broker, its queues and topics, and who logs in."""

from __future__ import annotations

from typing import Final

from redelivery.spark.options import values as read
from redelivery.spark.options.option import READ, READ_STREAM, WRITE, Option

_ALL: Final = (READ_STREAM, READ, WRITE)
_ROWS: Final = (READ_STREAM, READ)

PLACES: Final = (
    Option(
        "url",
        read.url,
        "The broker: `stomp://`, `stomp+ssl://`, `amqp://` or `amqps://`, host, port; or several of one cluster: "
        "`failover:(url,url)`.",
        where=_ALL,
        required=_ALL,
    ),
    Option(
        "destination",
        read.source,
        "The queue to read, as `orders` or `queue://orders`, or a topic, as `topic://news`, with `subscription`; "
        '`load("orders")` gives it too. Wildcards where the broker has them.',
        required=(READ_STREAM,),
        alias="path",
        instead="destinations",
    ),
    Option(
        "destination",
        read.queue,
        'The queue to look at, as `orders` or `queue://orders`; `load("orders")` gives it too.',
        where=(READ,),
        required=(READ,),
        alias="path",
        instead="destinations",
    ),
    Option(
        "destinations",
        read.sources,
        "Several instead of `destination`, as `orders,invoices`; the column `destination` says which one.",
    ),
    Option(
        "destinations",
        read.queues,
        "Several queues instead of `destination`, as `orders,invoices`; the column `destination` says which one.",
        where=(READ,),
    ),
    Option(
        "subscription",
        read.subscription,
        "The name of the durable subscription by which a topic is read; it is made at the first start, keeps what "
        "comes while the query does not run, and stays when the query is gone.",
    ),
    Option(
        "shared",
        read.flag,
        "Whether the subscription is a shared one, which several lanes or tasks can consume.",
        "false",
    ),
    Option(
        "clientId",
        read.client_id,
        "The client id that the subscription belongs to. Without it: the subscription's name; of a shared one none.",
    ),
    Option(
        "destination",
        read.target,
        "The queue or `topic://…` to send to, whatever a column `destination` says; without it that column is needed.",
        where=(WRITE,),
        alias="path",
    ),
    Option("username", read.string, "The user name for the broker.", where=_ALL, alias="user"),
    Option("password", read.secret, "The password; no log, error or repr shows it.", where=_ALL),
    Option(
        "passwordFile",
        read.string,
        "A file with the password, read for each connection: a path on all hosts, or a name sent by `spark.files`.",
        where=_ALL,
    ),
    Option("passwordEnv", read.variable, "The environment variable with the password, on all hosts.", where=_ALL),
    Option("tlsCa", read.string, "A file of trusted certificates (PEM); given like `passwordFile`.", where=_ALL),
    Option("tlsCert", read.string, "The file of the client's certificate (PEM), for mTLS.", where=_ALL),
    Option("tlsKey", read.string, "The file of its key, without a pass phrase, where `tlsCert` has none.", where=_ALL),
    Option("dialect", read.dialect, "Which broker it is, if that cannot be detected.", "auto", where=_ALL),
    Option("selector", read.string, "A JMS selector: only messages that it matches.", where=_ROWS),
)
