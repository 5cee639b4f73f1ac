"""The worker of this folder's files. The broker is in the environment variable REDELIVERY_URL."""

import os

import redelivery
from redelivery import RedeliveryPolicy, SharedDeadLetterStrategy

app = redelivery.App(
    os.environ["REDELIVERY_URL"],
    redelivery_policy=RedeliveryPolicy(maximum_redeliveries=3, initial_redelivery_delay=1),
    dead_letter_strategy=SharedDeadLetterStrategy("shop.DLQ"),
    application="shop 1.0",
)


@app.listener("orders", concurrency=2)
def order(message: redelivery.Message, session: redelivery.Session) -> None:
    session.producer("parcels").send(f"parcel with {message.body}")
