"""What a workload is: a pure generator, a dataflow, and an oracle that knows nothing of either engine."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, get_args

from snapline.batch import Batch
from snapline.core.guarantee import Guarantee
from snapline.durations import write_duration
from snapline.errors import UsageError
from snapline.ids import Millis
from snapline.workload.common.answers import AnswerColumns
from snapline.workload.common.losses import Excuses
from snapline.workload.common.settings import GivenSettings, Setting, paired

if TYPE_CHECKING:
    from snapline.dataflow.graph import Dataflow
    from snapline.validate.columns import Ints


Size: TypeAlias = Literal["full", "small"]
"""The papers' sizes, or small ones."""

_RECORDS = 1 << 40  # the most records of a partition: an offset has 40 bits of an id
_PRODUCT = 1 << 63  # the most that offset times duration may be: times are computed in 64 bits


def size_of(text: str, name: str = "a size") -> Size:
    """A size by its name. Raises UsageError."""
    sizes: tuple[Size, ...] = get_args(Size)
    for size in sizes:
        if text == size:
            return size
    raise UsageError(f"{name} is {' or '.join(sizes)}, not {text!r}")


@dataclass(frozen=True, slots=True)
class Params:
    """The size of a run. The generators are pure functions of these and an offset."""

    seed: int = 1
    partitions: int = 3  # one per slot
    records: int = 60  # per partition and source
    duration_ms: Millis = 2_400  # the records are due evenly over this time ...
    #: ... or all at the beginning; their times are spread over it all the same
    at_once: bool = False
    full: bool = False  # the papers' sizes; otherwise small ones, for runs of a few hundred records
    hot: int = 0  # percent of the records that name the hot key ...
    hot_ms: Millis = 0  # ... and after how long another key becomes the hot one; 0: never
    settings: GivenSettings = ()  # the settings of this workload that were given
    endless: bool = False  # after `duration_ms` input goes on as before, at the same rate
    #: for an oracle: of each source by name, how many records of each partition had been read; all else is
    #: still to come. Empty: everything was read. It is no part of what an input is, so it is not shown.
    cut: tuple[tuple[str, tuple[int, ...]], ...] = field(default=(), repr=False)
    #: for an oracle that judges bounded loss: what was lost; None: nobody asks for that
    excuses: Excuses | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", paired(self.settings))
        # Read from JSON, these are lists.
        object.__setattr__(self, "cut", tuple((name, tuple(each)) for name, each in self.cut))
        if not 0 <= self.hot <= 100:
            raise UsageError(f"a share of hot records is 0 to 100 percent, not {self.hot}")
        if self.hot_ms < 0 or (self.hot_ms and not self.hot):
            raise UsageError(
                "a hot key moves only where there is one: say how hot it is, as in --hot 20"
            )
        if self.records >= _RECORDS or self.records * self.duration_ms >= _PRODUCT:
            raise UsageError(
                f"{self.records:,} records of each source in one partition are more than can be numbered "
                f"over {write_duration(self.duration_ms)}: choose a lower rate or a shorter duration"
            )


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that an oracle found wrong, with the record concerned."""

    kind: Literal["missing", "duplicate", "wrong", "invented"]
    record: str  # the input or output record, readable
    because: str  # one sentence


class Ranges(Protocol):
    """The events of a run as streams of numbered events, of which any range can be made on its own."""

    @property
    def streams(self) -> int:
        """How many streams there are: one for each partition of each source."""
        ...

    @property
    def disorder_ms(self) -> Millis:
        """How far the times of neighbouring events may differ at most."""
        ...

    def end(self, stream: int) -> int:
        """How many events a stream has."""
        ...

    def through(self, stream: int, time_ms: Millis) -> int:
        """The first offset from which on all events are later than this."""
        ...

    def make(self, stream: int, start: int, stop: int) -> Batch:
        """The events start <= n < stop of a stream, as a judge takes them."""
        ...

    def places(self, ids: "Ints") -> tuple["Ints", "Ints"]:
        """Stream and offset of each id; the stream is -1 if there is no such event."""
        ...


@dataclass(frozen=True, slots=True)
class Lineage:
    """What a judge needs to know of a run whose outputs name the events behind them."""

    #: the events that went in, as `snapline.validate` takes them, with `arrival` and, if the run's own
    #: watermarks bound it, `watermark`
    events: Callable[[], Batch]
    window_ms: Millis
    lateness_ms: Millis  # how long after its end a window still waits for events
    label: Callable[[int], str]  # the id of an event -> a text for people, such as "GET 0:17"
    ranges: Ranges | None = None  # the same events, of which a part can be made at a time


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload: its name, its dataflow and its oracle."""

    name: str
    summary: str  # one line, for people
    cyclic: bool
    build: Callable[[Params], "Dataflow"]
    #: (params, committed output per sink, final state per operator and part, level) -> problems
    judge: Callable[
        [Params, Mapping[str, Batch], Mapping[str, Mapping[str, Batch]], Guarantee],
        Sequence[Problem],
    ]
    settings: Mapping[str, Setting] = field(default_factory=dict, hash=False)
    #: where outputs name the events behind them
    lineage: Callable[[Params], Lineage] | None = None
    #: whether the beginning of the input can be judged (`Params.cut`): output that comes only when a window
    #: closes has to have lineage, because an oracle does not know which windows have closed
    judges_prefix: bool = False
    #: whether its oracle knows which rows a loss touches (`Params.excuses`), and so judges bounded loss
    judges_losses: bool = False
    #: (params, level) -> why nobody can say that the level was kept, though its oracle found nothing wrong;
    #: None: one can. Of bounded loss this is only said of runs that declared losses
    doubts: Callable[[Params, Guarantee], str | None] | None = None
    #: the numbers in its output by which people judge it; None: there are none that can be told apart
    answer: AnswerColumns | None = None
    #: what the answer should be, with all its columns; None: what a run without failures puts out
    right_answer: Callable[[Params], Batch] | None = None
