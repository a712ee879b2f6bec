"""How long a killed slot takes to come back beside another job of the same session.

    python -m benchmarks.engine.beside

q12 on 2 slots of a session with 4 cores; slot 1 is killed six seconds after the start: alone, beside a job
of 1,000 tasks of 0.1 s each under Spark's fair scheduler, with the pool of slots, and beside it under FIFO,
which is Spark's own default; in turns. The page has kill -> noticed (detection) and noticed -> all tasks
ready (restart): median, lowest and highest; and how many tasks of the job were done when the slot was lost,
and when it was back.
"""

import argparse
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

import snapline as sl
from benchmarks.common.pages import Session, call, names, parser_of, spread, table, with_spread
from snapline.journal.entry import Happened
from snapline.journal.happenings import JobRunning, SlotLost
from snapline.metrics.second import Second
from snapline.spark.session_settings import SettingsHurt
from snapline.spark.slot_jobs import own_session
from snapline.spark.starting import Aside

TAG = "beside"
TASK_S = 0.1
HOW = (
    "q12 on 2 slots of a Spark session with 4 cores; slot 1 is killed in second 6 of 12. Beside it: a job",
    "of short tasks, begun when the slots ran. *Detection*: kill to noticed; *restart*: noticed to all",
    "tasks ready; median (lowest to highest) in seconds. *Tasks done*: of that job, when the slot was lost",
    "and when it was back, lowest to highest. All outputs were right.",
)


class Neighbour:
    """A watcher that starts a job of many short tasks when the slots run, and counts them."""

    def __init__(self, spark: SparkSession, tasks: int) -> None:
        self.spark = spark
        self.tasks = tasks
        self.done = spark.sparkContext.accumulator(0)
        self.job: Aside[None] | None = None
        self.at_loss = 0  #: tasks that were done when a slot was lost ...
        self.when_back = 0  #: ... and when it was back

    def event(self, happened: Happened) -> None:
        match happened.what:
            case JobRunning() if self.tasks and self.job is None:
                self.job = Aside(self._work)
            case JobRunning():
                self.when_back = self.done.value
            case SlotLost():
                self.at_loss = self.done.value

    def second(self, second: Second) -> None:
        """Do nothing: only events matter."""

    def _work(self) -> None:
        context, done = self.spark.sparkContext, self.done

        def task(_: int) -> None:
            time.sleep(TASK_S)
            done.add(1)

        context.addJobTag(TAG)
        context.parallelize(range(self.tasks), self.tasks).foreach(task)

    def leave(self) -> None:
        """End the job."""
        self.spark.sparkContext.cancelJobsWithTag(TAG)
        if self.job is not None:
            self.job.wait(60)


@dataclass(frozen=True, slots=True)
class Found:
    """The figures of one run."""

    detection_s: float
    restart_s: float
    at_loss: int
    when_back: int


def measure(tasks: int, mode: str) -> Found:
    """One run, judged."""
    spark = own_session(3, settings={"spark.scheduler.mode": mode})
    neighbour = Neighbour(spark, tasks)
    with tempfile.TemporaryDirectory() as runs:
        run = sl.run(
            "q12",
            spark,
            slots=2,
            rate=1_000,
            interval="1s",
            duration="12s",
            faults="kill slot=1 at=6s",
            runs=Path(runs),
            watcher=neighbour,
        )
    neighbour.leave()
    spark.stop()
    if run.verdict.kept != "yes":
        raise SystemExit(f"the output is not right: {run.verdict.because}")
    if neighbour.at_loss >= tasks > 0:
        raise SystemExit("the job was over before the slot was killed: ask for more --tasks")
    if run.metrics["lost"] != 1:
        raise SystemExit(f"{run.metrics['lost']} slots were lost instead of one: ask again")
    [detection_s], [restart_s] = run.metrics["detection_s"], run.metrics["restart_s"]
    return Found(detection_s, restart_s, neighbour.at_loss, neighbour.when_back)


def row(beside: str, mode: str, found: list[Found]) -> list[str]:
    """What several runs of one kind come to."""
    done = (spread([getattr(each, name) for each in found], 0) for name in ("at_loss", "when_back"))
    times = (
        with_spread([getattr(each, name) for each in found])
        for name in ("detection_s", "restart_s")
    )
    return [beside, mode, *times, *(("-", "-") if beside == "nothing" else done)]


def options() -> argparse.Namespace:
    parser = parser_of(__doc__, "beside.md")
    parser.add_argument("--tasks", type=int, default=1_000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument(
        "--modes", type=names, default=["FAIR", "FIFO"], help="of Spark's scheduler"
    )
    return parser.parse_args()


def main() -> None:
    asked = options()
    session = Session()
    warnings.simplefilter("ignore", SettingsHurt)
    beside = f"{asked.tasks:,} tasks of {TASK_S} s"
    kinds = {("nothing", "FAIR"): 0, **{(beside, mode): asked.tasks for mode in asked.modes}}
    found: dict[tuple[str, str], list[Found]] = {kind: [] for kind in kinds}
    for turn in range(asked.turns):
        for kind, tasks in kinds.items():
            found[kind].append(measure(tasks, kind[1]))
            session.say(f"turn {turn + 1}: beside {kind[0]}, {kind[1]}: {found[kind][-1]}")
    head = [
        "beside",
        "scheduler",
        "detection s",
        "restart s",
        "tasks done at the loss",
        "when back",
    ]
    rows = [row(*kind, runs) for kind, runs in found.items()]
    how = [f"Commit {session.commit()}, {asked.turns} turns.", *HOW]
    session.write(asked.to, "A killed slot beside another job", how, [table(head, rows)])


if __name__ == "__main__":
    call(main)
