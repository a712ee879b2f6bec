"""Settings of a user's session that hurt slots, each with one sentence that says why and what to do.

Spark knows nothing of slots: to it they are tasks that never end, return little, and sometimes die. Some
of its settings take that for a fault. Those that no run can survive are refused; of others users are told.
"""

import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from pyspark.sql import SparkSession

from snapline.errors import UsageError
from snapline.spark.pool import FAIR, MODE

Get: TypeAlias = Callable[[str], str]
"""The value of a setting, in lower case; empty if it is not set."""

_IDLE_MIN_S = 10
_EXCLUDING = (
    "spark.excludeOnFailure.enabled",
    "spark.excludeOnFailure.application.enabled",
    "spark.blacklist.enabled",
)
_MEMORY_MIN_MB = 512
_UNITS_MB = {"k": 1 / 1024, "": 1.0, "m": 1.0, "g": 1024.0, "t": 1024.0**2}


class SettingsHurt(UserWarning):
    """A setting of the session that makes failures worse than they need to be."""


@dataclass(frozen=True, slots=True)
class Hurt:
    """What a setting does to slots."""

    sentence: str
    fatal: bool = False  # no run survives it


def hurting(get: Get) -> Iterator[Hurt]:
    """What is wrong with these settings."""
    for place in ("spark.python.worker", "spark.sql.execution.pyspark.udf"):
        patience = get(f"{place}.idleTimeoutSeconds").rstrip("s")
        short = patience.isdecimal() and 0 < int(patience) < _IDLE_MIN_S
        if get(f"{place}.killOnIdleTimeout") == "true" and short:
            yield Hurt(
                f"{place}.killOnIdleTimeout kills workers that return nothing for {patience} s, and slots "
                f"return a row each second, on a busy machine later: set {place}.idleTimeoutSeconds to "
                f"{_IDLE_MIN_S} or more",
                fatal=True,
            )
    if get(MODE) != FAIR.lower():
        yield Hurt(
            f"{MODE} is FIFO: beside another job of this session a lost slot waits until all tasks of that "
            f"job have started: make the session with {MODE}={FAIR}"
        )
    local = re.fullmatch(r"local(\[.*\])?", get("spark.master"))  # there Spark never speculates
    copies = get("spark.speculation") == "true" and not local
    if copies and get("spark.speculation.task.duration.threshold"):
        yield Hurt(
            "spark.speculation.task.duration.threshold lets Spark start a copy of every slot that runs "
            "for longer; the copy waits like a spare, and holds a core: unset it, or spark.speculation"
        )
    if "true" in map(get, _EXCLUDING):
        yield Hurt(
            "spark.excludeOnFailure.enabled keeps Spark from machines on which a few slots have died, and "
            "a lost slot may find none: set it to false"
        )
    if most := get("spark.executor.maxNumFailures"):
        yield Hurt(
            f"spark.executor.maxNumFailures ends the application after {most} lost executors: set it to "
            "more than the run may lose"
        )
    if get("spark.dynamicAllocation.enabled") == "true":
        yield Hurt(
            "spark.dynamicAllocation.enabled takes executors away on which no slot runs, so a lost slot "
            "waits until there is a new one: set it to false, or ask for spares"
        )
    megabytes = _megabytes(get("spark.executor.pyspark.memory"))
    if megabytes is not None and megabytes < _MEMORY_MIN_MB:
        yield Hurt(
            f"spark.executor.pyspark.memory ends a slot that takes more than {megabytes:g} MB, and its "
            f"libraries alone take 150: set it to {_MEMORY_MIN_MB}m or more, or unset it"
        )


def check_settings(spark: SparkSession) -> None:
    """Raise UsageError if no run can survive a setting of the session; warn of those that only hurt."""
    said = spark.conf
    found = list(hurting(lambda name: str(said.get(name, "") or "").strip().lower()))
    if fatal := [hurt.sentence for hurt in found if hurt.fatal]:
        raise UsageError(f"slots would not survive in this session: {fatal[0]}")
    for hurt in found:
        warnings.warn(hurt.sentence, SettingsHurt, stacklevel=2)


def _megabytes(size: str) -> float | None:
    """A size as Spark writes it; without a unit it is in MB. None if it is not set, or no size."""
    read = re.fullmatch(r"([0-9]+)([kmgt]?)b?", size)
    return int(read[1]) * _UNITS_MB[read[2]] if read else None
