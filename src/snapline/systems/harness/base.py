"""The interface that a streaming system needs to be put to the test, the same for all of them.

Snapline makes the input, breaks the system and judges the output; a system only has to be started, given
records, hurt, and read. `run` drives it from one loop and one thread:

    start(work)                      returns when records may come
    input(stream, batch) ...         in order of time, as they become due; end_input() after the last
    look() ...                       all the time: notices deaths, restarts what died, says how it stands
    kill, pause, resume, disturb     in between, when a fault says so
    output(), late_output()          when it has finished, as any reader of its sink would see it
    stop()                           always, whatever happened: no process may be left behind

A system brings no judge. Its output has the columns that the judge of the workload wants; for workloads
with lineage these are the columns of `docs/systems.md`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from snapline.batch import Batch, Schema
from snapline.chaos.faults import Cut, Delay, Fault, Partition
from snapline.core.guarantee import Guarantee
from snapline.workload.common.base import Params

Target: TypeAlias = Literal["driver", "executor"]
"""Which process of a system a fault strikes: its driver, or one of its executors."""


Network: TypeAlias = Delay | Cut | Partition
"""The faults that concern connections between processes."""


class State(StrEnum):
    """The state of a system, as `look` reports it."""

    RUNNING = "running"
    DOWN = "down"  # killed or starting; it will be back by itself
    FINISHED = "finished"  # all input is processed, and all output is out
    FAILED = "failed"  # it will not come back: `System.problem` says why


@dataclass(frozen=True, slots=True)
class Work:
    """What a system is to do."""

    workload: str
    params: Params
    streams: Mapping[str, Schema]  # the inputs by name; their columns, among them `id` and `time`
    directory: Path  # where it writes everything; it exists and is empty
    cores: int


@dataclass(frozen=True, slots=True)
class VisibleRows:
    """Rows of output that became visible at one time."""

    rows: Batch
    at_s: float  # seconds since the epoch


class Subject(Protocol):
    """What runs and is hurt: all that feeding it, striking it and watching it asks for."""

    @property
    def name(self) -> str:
        """The name of the system on the command line."""
        ...

    def refusal(self, fault: Fault) -> str | None:
        """Why this fault cannot be done to it; None if it can."""
        ...

    def stop(self) -> None:
        """End all that was started. May be called at any time, and again."""
        ...

    def look(self) -> State:
        """Return its state, and restart what has died, as a supervisor of that system would."""
        ...

    @property
    def problem(self) -> str | None:
        """Why it failed."""
        ...

    def input(self, stream: str, batch: Batch) -> None:
        """Take records of a stream. Whatever fails meanwhile, the system sees all of them or none."""
        ...

    def end_input(self) -> None:
        """Take note that there is no more input: open windows have to close and come out."""
        ...

    def kill(self, target: Target, number: int = 0) -> list[int]:
        """Send SIGKILL to the driver, or to an executor by its number; return the processes it hit."""
        ...

    def pause(self) -> list[int]:
        """Send SIGSTOP to the driver; return the processes it hit."""
        ...

    def resume(self) -> None:
        """Send SIGCONT to the driver."""
        ...

    def disturb(self, fault: Network) -> int:
        """Make its network slow, or cut it, from now on; return how many connections are concerned."""
        ...

    def in_round(self) -> bool:
        """Whether it has written output of a round (a checkpoint, a micro-batch) and not committed it."""
        ...

    def figures(self) -> Mapping[str, int]:
        """Figures that it reports of itself: rounds, restarts, rows that it dropped.

        `read` is how many records of its input it has processed. A system that says it can be asked for its
        capacity.
        """
        ...


class System(Subject, Protocol):
    """A streaming system under test that runs workloads, and whose output their judges can read."""

    @property
    def promise(self) -> Guarantee:
        """The highest guarantee that it claims, with the options that it was given."""
        ...

    @property
    def workloads(self) -> Collection[str]:
        """The names of the workloads that it can run."""
        ...

    def start(self, work: Work) -> None:
        """Start it; returns when it takes input. Raises SnaplineError if it does not come up."""
        ...

    def output(self) -> Mapping[str, list[VisibleRows]]:
        """The output of each sink as a reader of it sees it now, in the order in which it was written."""
        ...

    def late_output(self) -> list[VisibleRows] | None:
        """The events that it set aside as late; None if it has no such output."""
        ...

    def account(self) -> Sequence[str]:
        """Sentences that explain its output: what it repeated, dropped or left out."""
        ...
