"""A user's own query as what is fed and hurt: files appear, its driver is killed and started again.

Its driver program (`driver`) is supervised as that of Structured Streaming with Snapline's workloads is. A
*round* is a micro-batch that has put its rows out and is not committed. Each fault that waits for a round
gets a micro-batch from which on it strikes, so that kills do not all hit the first one; the driver stands
still there until it is killed.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from snapline.batch import Batch
from snapline.chaos.faults import At, During, Fault, KillDriver, PauseDriver
from snapline.errors import SnaplineError, UsageError
from snapline.storage.files.places import make_directory, write_whole
from snapline.systems.harness.base import Network, State, Target
from snapline.systems.harness.processes import Group
from snapline.systems.harness.supervisor import Supervisor
from snapline.systems.own_query.driver import WRITTEN, QueryPlan
from snapline.systems.own_query.sending import inherited_environment
from snapline.systems.own_query.staged import FILE
from snapline.systems.structured_streaming.driver import END, FAILED, PROGRESS
from snapline.systems.structured_streaming.files import MicroBatches, rows_dropped
from snapline.systems.structured_streaming.program import (
    PLAN,
    REPORTS,
    last_words,
    launch,
    reported,
)

START_S = 240.0
POLL_S = 0.05


def url(path: Path) -> str:
    """A path of this machine as Spark takes it, whatever its default file system is."""
    return f"file://{path}"


def refusal(fault: Fault) -> str | None:
    """Why a fault cannot be done to a query; None if it can."""
    match fault:
        case KillDriver(At() | During("round")) | PauseDriver():
            return None
        case _:
            return (
                "its driver does all the work: 'kill driver at=3s', 'kill driver on=round' (in a "
                "micro-batch), 'pause driver at=3s for=2s'"
            )


@dataclass(frozen=True, slots=True)
class Places:
    """Where things lie in the directory of a check."""

    directory: Path

    @property
    def staged(self) -> Path:
        """Files that have not appeared yet."""
        return self.directory / "staged"

    @property
    def input(self) -> Path:
        """Files that the query may read."""
        return self.directory / "input"

    @property
    def output(self) -> Path:
        """The output of a query without a sink of its own: a directory for each micro-batch."""
        return self.directory / "output"

    @property
    def functions(self) -> Path:
        """The user's functions, pickled."""
        return self.directory / "functions.pickle"

    @property
    def reports(self) -> Path:
        """What the driver says of itself."""
        return self.directory / REPORTS

    @property
    def progress(self) -> Path:
        """What Spark says of each micro-batch."""
        return self.reports / PROGRESS

    @property
    def batches(self) -> MicroBatches:
        """The micro-batches, by Spark's checkpoint."""
        return MicroBatches(self.directory / "checkpoint")


class OwnQuery:
    """Runs a user's own query."""

    name = "your query"

    def __init__(
        self, places: Places, plan: QueryPlan, files: Sequence[Path], rounds: Sequence[int]
    ) -> None:
        """Prepare; nothing is started. `rounds` are the micro-batches from which on a kill strikes."""
        self._places = places
        self._plan = plan
        self._files = files
        self._rounds = list(rounds)
        self._met = False  #: whether a kill that waits for a round was just told that there is one
        self._supervisor = Supervisor(
            self._launch,
            self._ready,
            lambda: places.batches.committed,
            lambda: last_words(places.directory),
        )

    def start(self) -> None:
        """Start the first driver, and wait until its query runs. UsageError if Spark refuses the query."""
        make_directory(self._places.input)
        make_directory(self._places.reports)
        deadline = time.monotonic() + START_S
        while self.look() is not State.RUNNING:
            if (self._places.reports / FAILED).exists():
                raise UsageError(
                    f"build cannot run as a stream: {last_words(self._places.directory)}"
                )
            if self.problem is not None or time.monotonic() > deadline:
                raise SnaplineError(f"{self.name} does not start: {self.problem or 'no answer'}")
            time.sleep(POLL_S)

    def _launch(self) -> Group:
        hold_from = self._rounds[0] if self._rounds else None
        replace(self._plan, hold_from=hold_from).save(self._places.directory / PLAN)
        return launch(
            "snapline.systems.own_query.driver", self._places.directory, inherited_environment()
        )

    def _ready(self) -> list[int] | None:
        said = reported(self._places.directory)
        return None if said is None else [int(said["java"])]

    def stop(self) -> None:
        """Kill what still runs; a query needs no orderly end."""
        self._supervisor.stop()

    def look(self) -> State:
        """Whether the query runs; a driver that died is started again."""
        return self._supervisor.look()

    @property
    def problem(self) -> str | None:
        """Why it failed."""
        return self._supervisor.problem

    # Input.

    def input(self, stream: str, batch: Batch) -> None:
        """Let files appear; the batch has their numbers."""
        for number in batch[FILE].tolist():
            file = self._files[number]
            file.rename(self._places.input / file.name)

    def end_input(self) -> None:
        """Let the driver end when all is processed."""
        write_whole(self._places.reports / END, "")

    # Faults.

    def refusal(self, fault: Fault) -> str | None:
        """Why a fault cannot be done to it; None if it can."""
        return refusal(fault)

    def kill(self, target: Target, number: int = 0) -> list[int]:
        """Send SIGKILL to the driver and its Java."""
        if self._met:
            self._rounds.pop(0)
        self._met = False
        return self._supervisor.kill()

    def pause(self) -> list[int]:
        """Send SIGSTOP to the driver and its Java."""
        return self._supervisor.pause()

    def resume(self) -> None:
        """Send SIGCONT to both."""
        self._supervisor.resume()

    def disturb(self, fault: Network) -> int:
        """Nothing: the driver talks to nobody."""
        return 0

    def in_round(self) -> bool:
        """Whether this life of the driver has put out a micro-batch that a kill waits for."""
        self._met = False
        if not self._rounds or not (pids := self._supervisor.pids()):
            return False
        with suppress(FileNotFoundError):
            pid, number = map(int, (self._places.reports / WRITTEN).read_text().split())
            due = pid == pids[0] and number >= self._rounds[0]
            self._met = due and self._places.batches.committed < number
        return self._met

    def figures(self) -> Mapping[str, int]:
        """How many micro-batches were committed, rows dropped behind the watermark, and restarts made."""
        return {
            "batches": self._places.batches.committed + 1,
            "dropped": rows_dropped(self._places.progress),
            "restarts": self._supervisor.restarts,
        }
