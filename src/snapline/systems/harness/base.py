"""What it takes to put a streaming system to the test: one small interface for all of them.

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
from typing import Any, Literal, Protocol, TypeAlias

from snapline.batch import Batch, Schema
from snapline.chaos.faults import Cut, Delay, Fault, Partition
from snapline.core.policy import Guarantee
from snapline.workload.common.base import Params

Target: TypeAlias = Literal["driver", "executor"]
"""Which of a system's processes a fault is for: the one that decides, or one that works for it."""


Network: TypeAlias = Delay | Cut | Partition
"""What a fault can do to connections between processes."""


class State(StrEnum):
    """How a system stands."""

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
    directory: Path  # for all that it writes; it is there and empty
    cores: int


@dataclass(frozen=True, slots=True)
class VisibleRows:
    """Rows of output that became visible at one time."""

    rows: Batch
    at_s: float  # seconds since the epoch


class System(Protocol):
    """A streaming system under test."""

    @property
    def name(self) -> str:
        """What it is called on the command line."""
        ...

    @property
    def promise(self) -> Guarantee:
        """What it claims to guarantee, set up as it is."""
        ...

    @property
    def workloads(self) -> Collection[str]:
        """What it can run."""
        ...

    def refusal(self, fault: Fault) -> str | None:
        """Why this fault cannot be done to it; None if it can."""
        ...

    def start(self, work: Work) -> None:
        """Start it; returns when it takes input. Raises SnaplineError if it does not come up."""
        ...

    def stop(self) -> None:
        """End all that was started. May be called at any time, and again."""
        ...

    def look(self) -> State:
        """See how it stands, and restart what has died, as a supervisor of that system would."""
        ...

    @property
    def problem(self) -> str | None:
        """Why it failed."""
        ...

    def input(self, stream: str, batch: Batch) -> None:
        """Take records. They are whole, or not there, for whatever fails meanwhile."""
        ...

    def end_input(self) -> None:
        """There is no more input: what is open, such as a last window, is to come out."""
        ...

    def kill(self, target: Target, number: int = 0) -> list[int]:
        """SIGKILL to the driver, or to an executor by its number; returns whom it hit, if anybody."""
        ...

    def pause(self) -> list[int]:
        """SIGSTOP to the driver, likewise."""
        ...

    def resume(self) -> None:
        """SIGCONT to it."""
        ...

    def disturb(self, fault: Network) -> int:
        """Make its network worse as a fault says, from now on; returns how many connections there are."""
        ...

    def in_round(self) -> bool:
        """Whether it has written output of a round (a checkpoint, a micro-batch) and not committed it."""
        ...

    def output(self) -> Mapping[str, list[VisibleRows]]:
        """The output of each sink as a reader of it sees it now, in the order in which it was written."""
        ...

    def late_output(self) -> list[VisibleRows] | None:
        """The events that it set aside as late; None if it has no such output."""
        ...

    def figures(self) -> Mapping[str, Any]:
        """What it says of itself: rounds, restarts, rows that it dropped."""
        ...

    def account(self) -> Sequence[str]:
        """How it came to its output, in sentences for people: what it repeated, dropped or left out."""
        ...
