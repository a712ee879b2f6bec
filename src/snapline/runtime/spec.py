"""What to run: the one description that the command line, the API and a resume share."""

from dataclasses import dataclass
from typing import Literal

from snapline.errors import UsageError
from snapline.ids import Millis
from snapline.protocols import DEFAULT
from snapline.runtime.rundir import RunDirectory
from snapline.workload.base import Params, Size
from snapline.workload.generated import records_per_partition
from snapline.workload.settings import GivenSettings, paired

LOOPBACK = "127.0.0.1"
OWN = "snapline"
"""The system that has slots and protocols: this one."""


@dataclass(frozen=True, slots=True)
class Spec:
    """All that a resume needs to know again. Some fields are for workloads only."""

    flow: str  # a workload, `my_flow.py:flow`, or the name of a dataflow that a program holds
    protocol: str = DEFAULT
    guarantee: str | None = None  # None: the protocol's first promise
    slots: int = 2
    rate: int | Literal["max"] = 2_000  # records per second; max: all are due at once
    duration_ms: Millis = 20_000
    interval_ms: Millis = 5_000
    faults: str = ""
    spares: int = 0
    seed: int = 1
    input: str | None = None  # a directory that `generate` has written
    reference: bool = False  # judge by a run without failures
    publish_lag: int = 0  # 1: a line's output is public when the next line is committed
    journal: Literal["brief", "full"] = "brief"  # full: with every message, to be fed back
    listen: str = LOOPBACK  # the address at which the driver can be reached
    origin_s: float | None = None  # when input began to be due; a resumed run keeps it
    records: int = 1_000_000  # how many there are if they are due at once
    size: Size = "full"
    hot: int = 0  # percent of the records that name the hot key ...
    hot_ms: Millis = 0  # ... and after how long another key becomes the hot one; 0: never
    settings: GivenSettings = ()  # those of the workload that were given
    drawn: bool = False  # the faults come from a seed (chaos): some of them may miss
    allow_vacuous: bool = (
        False  # also a run that proved nothing may be said to have kept its promise
    )
    shared: bool = False  # the run directory is not for its owner alone: the umask decides
    system: str = OWN  # or a system under test, with its options: see `systems.registry`

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", paired(self.settings))  # run.json has lists

    @property
    def params(self) -> Params:
        """The size of the generated input."""
        if self.rate == "max":
            records = max(1, self.records // self.slots)
        else:
            records = records_per_partition(self.rate, self.slots, self.duration_ms)
        return Params(
            self.seed,
            self.slots,
            records,
            self.duration_ms,
            at_once=self.rate == "max",
            full=self.size == "full",
            hot=self.hot,
            hot_ms=self.hot_ms,
            settings=self.settings,
        )


def spec_of(directory: RunDirectory) -> Spec:
    """What was run."""
    fields = {name: value for name, value in directory.spec().items() if name != "version"}
    try:
        return Spec(**fields)
    except TypeError as error:
        raise UsageError(f"{directory.path} was written by another version: {error}") from error
