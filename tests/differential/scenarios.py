"""The scenarios: what a file says about one queue, and how a client treats the message that it takes from there.

Each is played on the real broker that has the file, and on the embedded broker that has the same one.
"""

from __future__ import annotations

from typing import Final

from tests.differential.artemis import ARTEMIS, HORNETQ
from tests.differential.broker_j import BOUND_BY_DEFAULT, BROKER_J
from tests.differential.classic import CLASSIC, GONE, INDIVIDUAL

SCENARIOS: Final = (*ARTEMIS, *HORNETQ, *CLASSIC, *GONE, *INDIVIDUAL, *BROKER_J, *BOUND_BY_DEFAULT)
