"""The interface of operators. One instance belongs to one task; all that it remembers is in its state."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

from snapline.batch import Batch
from snapline.dataflow.operators.known import Known
from snapline.dataflow.operators.saved import captured, give_back
from snapline.dataflow.state.hashing import Hashes
from snapline.dataflow.state.missed_rows import MissedRows
from snapline.ids import Millis

Outputs: TypeAlias = Sequence[tuple[str, Batch]]
"""Batches per named output, in order. The usual output is called `out`."""

OUT = "out"
IN = "in"
TENTATIVE = "tentative"


@dataclass(frozen=True, slots=True)
class Groups:
    """A part of a state in groups of rows, each of which is stored by itself: see `sliding/groups.py`.

    In a capture `written` has the groups that are new or have changed, whole, and `dropped` those that
    belong to the state no more; all others are as they were. In a restore `written` has all groups. Those
    that could not be read are `lost`.
    """

    written: Mapping[int, Batch]  # by number, in the order of their rows
    dropped: Sequence[int] = ()
    lost: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Capture:
    """An operator's state at one moment: all of it, or what changed since the capture before.

    The columns must never change after the capture: they are encoded and written in the background while
    the operator goes on.
    """

    full: bool
    parts: Mapping[str, Batch]
    #: how many bytes of a delta replace nothing older, so that the whole state is larger by them
    grown: int = 0
    #: parts that are kept in groups, if the engine has asked for that; they are never captured whole
    groups: Mapping[str, Groups] = field(default_factory=dict)


class Operator:
    """The base class; as it stands, a stateless operator that passes everything on."""

    #: whether it needs `on_watermark`; edges that lead to no such operator carry no watermarks
    uses_time: bool = False
    #: the input columns on which its output `out` depends, those of the key too; None: all of them
    reads: Collection[str] | None = None
    #: the attributes that hold its state, if it leaves `capture` and `restore` as they are: see `saved.py`
    saved: Sequence[str] = ()
    #: for each port at which it has windows by rows, the columns of their keys
    row_keys: Mapping[str, Sequence[str]] = MappingProxyType({})

    def known_columns(self, output: str, given: Mapping[str, Known]) -> Known:
        """What is known of the columns of an output, from what is known of the inputs, by port.

        An operator that passes on what it is given knows that. Of others nothing is known, unless they
        say it.
        """
        return next(iter(given.values())) if type(self).process is Operator.process else None

    def process(self, port: str, batch: Batch) -> Outputs:
        """Take a batch of an input; return what goes out. The batch is never empty."""
        return ((OUT, batch),)

    def on_watermark(self, time: Millis) -> Outputs:
        """Take a watermark, which says that no record older than `time` will come; return what goes out."""
        return ()

    @property
    def windows_closed(self) -> int:
        """How many windows this instance has closed: a protocol may take a checkpoint then."""
        return 0

    def capture(self, *, full: bool) -> Capture:
        """Capture the state. With `full=False` it may be a delta to the capture before."""
        return Capture(True, captured(self, self.saved))

    def restore(self, captures: Sequence[Capture]) -> None:
        """Restore a state from a full capture and then deltas, in order. Called on a fresh instance."""
        if self.saved and captures:
            give_back(self, captures[-1].parts)

    def by_group(self, rows: int | None) -> None:
        """Told to capture in groups of so many rows what can be: 0 leaves the number to the operator.

        None: as parts, which is how an operator begins.
        """

    def expire(self, time: Millis) -> int:
        """Forget the windows that a watermark of `time` closes, unsaid; return how many there were.

        Called on an instance that was restored alone, while others went on to `time`: such a window missed
        records, and must not be put out as if it were right. Records that come for it are late.
        """
        return 0

    def mark_stale(self, time: Millis) -> Outputs:
        """As `expire`, but return what these windows would put out on the output `tentative`.

        An operator that puts out everything at once has nothing left to say of them.
        """
        self.expire(time)
        return ()

    def living(self, port: str) -> Hashes:
        """The hashes of the keys of all rows that are in windows by rows at a port, a hash for each row."""
        raise NotImplementedError

    def forget_stale(self, port: str, missed: MissedRows) -> int:
        """Forget the rows that rows which never came would have driven out; return how many that were.

        Called on an instance that was restored alone, for each port in `row_keys`, before anything comes.
        """
        return 0
