"""Dead letters of a shop: four causes, with passports, as this library writes them."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import redelivery
from redelivery.broker import EmbeddedBroker
from redelivery.model.content.dead_letters import PASSPORT
from redelivery.model.passport import FailedAttempt, Passport, write_passport
from redelivery.model.values import to_epoch_ms
from redelivery.policies.activemq.causes import delivery_cause
from redelivery.policies.dead_letter_headers import dead_letter_properties

DLQ = "ActiveMQ.DLQ"
POLICY = redelivery.RedeliveryPolicy(
    maximum_redeliveries=4,
    initial_redelivery_delay=1,
    use_exponential_back_off=True,
    back_off_multiplier=2,
    use_collision_avoidance=True,
)
CAUSES = (
    ("KeyError", "'price'", "shop.pricing:total", "a3f1c2d4e5b6"),
    (
        "shop.payment.TimeoutError",
        "card of order {0} was not authorized in 30 s",
        "shop.payment:Card.charge",
        "b7e2d1c0f9a8",
    ),
    ("shop.stock.OutOfStock", "article A{0} is not in stock", "shop.stock:reserve", "c9d8e7f6a5b4"),
    ("LookupError", "customer {0} has no address", "shop.customers:Customer.address", "d1e2f3a4b5c6"),
)


def letters(broker: EmbeddedBroker, count: int, queue: str = DLQ, seed: int = 7) -> None:
    """Send so many, each fourth of one cause, which failed in the last three hours."""
    drawn, now = random.Random(seed), datetime.now(UTC)  # noqa: S311  # no secret
    with redelivery.connect(broker.vm_url) as connection, connection.session("transacted") as session:
        producer = session.producer(queue)
        for number in range(count):
            kind, text, frame, fingerprint = CAUSES[number % 4]
            text = text.format(number)
            at = now - timedelta(minutes=180 * drawn.random() ** (1 + number % 4))
            attempts = [FailedAttempt(5, at, "worker-1")]
            for attempt in range(4, 0, -1):
                at -= timedelta(seconds=POLICY.delay(attempt, drawn))
                attempts.insert(0, FailedAttempt(attempt, at, f"worker-{drawn.randint(1, 3)}"))
            passport = Passport(
                exception=kind,
                message=text,
                fingerprint=fingerprint,
                frame=frame,
                stack=("shop.workers:handle, line 31", "shop.orders:Order.place, line 118", f"{frame}, line 57"),
                attempts=tuple(attempts),
                policy="orders.>: 4 redeliveries after 1 s, then twice as long each time",
                client=f"redelivery {redelivery.__version__}",
                application="shop 2.4",
                consumer="orders of connection shop-7",
            )
            cause = delivery_cause(5, POLICY, f"{kind}: {text}")
            failed_at = to_epoch_ms(attempts[-1].at)
            said = dead_letter_properties(cause, redelivery.Queue("orders"), 0, 5, failed_at_ms=failed_at)
            body: dict[str, Any] = {
                "order": number,
                "customer": f"C{number % 97:04}",
                "price": None,
                "items": [{"sku": f"A{number}", "count": 2}],
            }
            properties = {"tenant": ("eu", "us")[number % 2], **said, PASSPORT: write_passport(passport)}
            producer.send(json.dumps(body), properties=properties, type="Order", correlation_id=f"cart-{number}")
            if number % 500 == 499:
                session.commit()
        session.commit()
