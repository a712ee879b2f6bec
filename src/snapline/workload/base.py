"""What a workload is: a pure generator, a dataflow, and an oracle that knows nothing of either engine."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from snapline.batch import Batch
from snapline.core.policy import Guarantee
from snapline.ids import Millis

if TYPE_CHECKING:
    from snapline.dataflow.graph import Dataflow


@dataclass(frozen=True, slots=True)
class Params:
    """The size of a run. The generators are pure functions of these and an offset."""

    seed: int = 1
    partitions: int = 3  # one per slot
    records: int = 60  # per partition and source
    duration_ms: Millis = 2_400  # the records are due evenly over this time ...
    #: ... or all at the beginning; their times are spread over it all the same
    at_once: bool = False
    full: bool = False  # the papers' sizes; otherwise small ones, at which a few hundred records do
    hot: int = 0  # percent of the records that name the hot key ...
    hot_ms: Millis = 0  # ... and after how long another key becomes the hot one; 0: never


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that an oracle found wrong, with the record concerned."""

    kind: Literal["missing", "duplicate", "wrong", "invented"]
    record: str  # the input or output record, readable
    because: str  # one sentence


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload by name."""

    name: str
    summary: str  # one line, for people
    cyclic: bool
    build: Callable[[Params], "Dataflow"]
    #: (params, committed output per sink, final state per operator and part, level) -> problems
    judge: Callable[
        [Params, Mapping[str, Batch], Mapping[str, Mapping[str, Batch]], Guarantee],
        Sequence[Problem],
    ]
