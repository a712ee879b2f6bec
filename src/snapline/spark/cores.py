"""Counts the cores that a run needs against those that Spark can ever give it, before anything starts.

A slot or a spare holds a core until the run is over, and nobody shares it: a run with too few of them would
wait for ever. A stream is read by a query of its own beside the slots, which needs one, too. What comes
before the slots or after them takes none besides: a DataFrame is staged, and the workers are asked what
they have, before the first slot starts; the judge works in the driver when the last one has left. A query
that reads the output of a run while it goes on needs a core of its own, and nobody knows of it here.
"""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from snapline.errors import UsageError
from snapline.rundir.spec import Spec
from snapline.wording import plural

SLOTS_PER_CORE_MAX = 16
"""The most slots per core: with more of them, slots miss their heartbeats while they all start."""

_held: Counter[str] = Counter()  #: the tasks of runs that go on in this process, by application


@dataclass(frozen=True, slots=True)
class CoreNeed:
    """Tasks of Spark that run at the same time until the run is over, and what they are, for people."""

    tasks: int
    what: str


def needs_of(spec: Spec, streams: Sequence[str] = ()) -> list[CoreNeed]:
    """All that holds a core while a run goes on; its streams are sources that are being read."""
    needs = [
        CoreNeed(spec.all_slots, plural(spec.all_slots, "slot")),
        CoreNeed(spec.spares, plural(spec.spares, "spare")),
        CoreNeed(
            bool(streams), f"the query of the stream {' and that of '.join(map(repr, streams))}"
        ),
    ]
    return [need for need in needs if need.tasks]


def check_cores(spec: Spec, spark: SparkSession | None, streams: Sequence[str] = ()) -> None:
    """Raise UsageError if there can never be a core for all that a run needs."""
    if spark is None:
        check_own_cores(spec)
        return
    context = spark.sparkContext
    settings = context.getConf()
    most = tasks_at_once(
        str(context.master), lambda name: settings.get(name, "") or "", lambda: _java_cores(spark)
    )
    if most is None:  # a cluster: it may get more cores while slots wait
        return
    needs, others = needs_of(spec, streams), _held[str(context.applicationId)]
    tasks = sum(need.tasks for need in needs)
    if tasks + others > most:
        beside = f", {others} of them for other runs" if others else ""
        room = tasks + others + 1
        more = f"local[{room}]" if str(context.master).startswith("local") else f"{room} cores"
        raise UsageError(
            f"{_listed(needs)} need a core each, and Spark with the master {context.master} runs "
            f"{plural(most, 'task')} at once{beside}: ask for fewer, or give it {more}"
        )


def check_own_cores(spec: Spec) -> None:
    """Raise UsageError if there are far more slots than this machine has cores."""
    cores = len(os.sched_getaffinity(0))
    most = SLOTS_PER_CORE_MAX * cores
    needs = needs_of(spec)
    if sum(need.tasks for need in needs) > most and not spec.oversubscribe:
        raise UsageError(
            f"{_listed(needs)} are too many for {plural(cores, 'core')}: up to {most} start in good "
            "time; ask for fewer, or say --oversubscribe (oversubscribe=True) and be patient"
        )


@contextmanager
def holding(spark: SparkSession | None, spec: Spec, streams: Sequence[str] = ()) -> Iterator[None]:
    """Count the cores of a run that goes on: another one in the same session cannot have them.

    A session of our own (None) serves one run alone.
    """
    if spark is None:
        yield
        return
    application = str(spark.sparkContext.applicationId)
    held = sum(need.tasks for need in needs_of(spec, streams))
    _held[application] += held
    try:
        yield
    finally:
        _held[application] -= held


def tasks_at_once(
    master: str, get: Callable[[str], str], all_cores: Callable[[], int]
) -> int | None:
    """How many tasks a session can ever run at once, by its master and settings; None: nobody knows."""
    per_task = int(get("spark.task.cpus") or 1)
    if master == "local":
        return 1 // per_task
    if found := re.fullmatch(r"local\[\s*(\*|[0-9]+)\s*(?:,\s*[0-9]+\s*)?\]", master):
        return (int(all_cores()) if found[1] == "*" else int(found[1])) // per_task
    number = r"\s*([0-9]+)\s*"
    if found := re.fullmatch(rf"local-cluster\[{number},{number},\s*[0-9]+\s*\]", master):
        return int(found[1]) * (int(found[2]) // per_task)
    if master.startswith("spark://") and (most := get("spark.cores.max")):
        return int(most) // per_task
    return None


def _java_cores(spark: SparkSession) -> int:
    java: Any = spark.sparkContext._jvm
    return int(java.java.lang.Runtime.getRuntime().availableProcessors())


def _listed(needs: list[CoreNeed]) -> str:
    return " and ".join(need.what for need in needs)
