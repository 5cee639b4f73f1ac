"""Do the work of a message once, also when the message comes twice: a table beside the data that the work changes.

REDELIVERY_URL=stomp://user:password@localhost:61613 DATABASE=shop.db redelivery run idempotent_sql:app
"""

import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass

import redelivery

TABLES = """
CREATE TABLE IF NOT EXISTS processed (
    consumer TEXT NOT NULL, message TEXT NOT NULL, at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    PRIMARY KEY (consumer, message)
);
CREATE TABLE IF NOT EXISTS stock (article TEXT PRIMARY KEY, pieces INTEGER NOT NULL);
"""

app = redelivery.App(os.environ["REDELIVERY_URL"], dead_letter_strategy=redelivery.SharedDeadLetterStrategy("shop.DLQ"))


@dataclass
class Order:
    id: str
    article: str
    pieces: int


def first_time(database: sqlite3.Connection, consumer: str, key: str) -> bool:
    """Note, within the open transaction, that this consumer does the work of a message; False: it has done it."""
    noted = database.execute(
        "INSERT INTO processed (consumer, message) VALUES (?, ?) ON CONFLICT DO NOTHING", (consumer, key)
    )
    return noted.rowcount == 1


@app.listener("orders", body_type=Order, concurrency=2)
def reserve(order: Order, session: redelivery.Session) -> None:
    with closing(sqlite3.connect(os.environ["DATABASE"])) as database:
        database.executescript(TABLES)
        with database:  # one transaction for both: committed at its end, or rolled back by an exception
            if first_time(database, "reserve", order.id):
                database.execute(
                    "UPDATE stock SET pieces = pieces - ? WHERE article = ?", (order.pieces, order.article)
                )
    # Also the second time: what was sent the first time is lost if that was rolled back after the database's commit.
    session.producer("parcels").send(order.id, correlation_id=order.id)
