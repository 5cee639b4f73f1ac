"""The part of a run that needs Spark: where pyspark is installed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from benchmarks.places import BrokerPlace
from benchmarks.plan import Found, Plan
from benchmarks.results import BenchmarkError
from redelivery.model.errors import JMSError
from redelivery.testing.brokers.real import RealBroker, UnavailableError, running

if TYPE_CHECKING:
    from benchmarks.spark_cases import Extent

BROKER: Final = "artemis"
FAKE, LATENCY = "spark/fake", f"spark/{BROKER}/latency"
PROTOCOLS: Final = ("stomp", "amqp")
SHORT: Final = ("stomp",)


def run(plan: Plan, found: Found) -> None:
    """All of it that is wanted. What is not there is a note."""
    protocols = SHORT if plan.targets_only else PROTOCOLS
    names = [] if plan.fake_only else [*(f"spark/{BROKER}/{protocol}" for protocol in protocols), LATENCY]
    wanted = [name for name in (FAKE, *names) if plan.wants(name)]
    if not wanted:
        return
    if find_spec("pyspark") is None:
        found.notes.append("Without Spark: pyspark is not installed.")
        return
    from benchmarks.spark_cases import SIZES, Extent
    from benchmarks.spark_session import spark_session

    extent = Extent(1, plan.scale, SIZES[-1:]) if plan.targets_only else Extent(plan.rounds, plan.scale)
    with spark_session() as spark:
        if wanted[0] == FAKE:
            _measure(spark, None, wanted.pop(0), extent, found)
        if wanted:
            try:
                with running(BROKER) as broker:
                    for name in wanted:
                        _measure(spark, broker, name, extent, found)
            except UnavailableError as error:
                found.notes.append(f"Spark without {BROKER}: {error}.")


def _measure(spark: Any, broker: RealBroker | None, name: str, extent: Extent, found: Found) -> None:
    """One of them; what a broker or Spark may do to it is kept, and the others go on."""
    from pyspark.errors import PySparkException

    from benchmarks import spark_cases

    found.begin(name)
    try:
        if broker is None:
            measures, curves = spark_cases.fake(spark, extent)
            found.curves += curves
        elif name == LATENCY:
            measures = spark_cases.latency(spark, BrokerPlace(PROTOCOLS[0], broker), extent)
        else:
            measures = spark_cases.of_place(spark, BrokerPlace(name.rpartition("/")[2], broker), extent)
        found.measures += measures
    except (BenchmarkError, JMSError, OSError, PySparkException) as error:
        found.fail(name, error)
