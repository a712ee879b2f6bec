"""Where the output of a run lies: its sinks, their files, and which rows of them a view shows.

Whoever reads output, a Spark task or the command line, walks these files a few rows at a time.
"""

from collections.abc import Iterator
from typing import Literal, TypeAlias

from snapline.batch import Batch, Schema
from snapline.errors import UsageError
from snapline.ids import TaskId
from snapline.protocols import PROTOCOLS
from snapline.rundir.directory import RunDirectory

View: TypeAlias = Literal["committed", "uncommitted"]
POSITION_BITS = 40
"""The position of a row of output is the index of its sink task above this many bits of row number."""

Rows: TypeAlias = tuple[str, int, int | None]
"""A file, and which of its rows: from, to (None: all that are whole)."""


def public_view(protocol: str) -> View:
    """The view that everybody has: where no line is ever committed, output is public as it is written."""
    return "committed" if PROTOCOLS[protocol].checkpoints else "uncommitted"


def sinks_of(directory: RunDirectory) -> dict[str, list[TaskId]]:
    """The sinks of a run that was started, with their tasks."""
    sinks: dict[str, list[TaskId]] = {}
    for task in directory.outlet.files():
        sinks.setdefault(task.rpartition("/")[0], []).append(task)
    return sinks


def output_pieces(directory: RunDirectory, sink: str, view: View) -> list[Rows]:
    """The files of a sink, and which of their rows a view shows."""
    sinks, outlet = sinks_of(directory), directory.outlet
    if sink not in sinks:
        known = f"there is {', '.join(sinks)}" if sinks else "the run has written no output"
        raise UsageError(f"{directory.name} has no sink {sink!r}: {known}")
    if view == "uncommitted":
        return [(file, 0, None) for task in sinks[sink] for file in outlet.files()[task]]
    extents = [extent for task in sinks[sink] for extent in outlet.extents(task)]
    return [(extent.file, extent.start, extent.stop) for extent in extents]


def sink_schema(directory: RunDirectory, sink: str) -> Schema | None:
    """The kinds of a sink's columns, from the first rows of any of its files."""
    outlet = directory.outlet
    for file, _, _ in output_pieces(directory, sink, "uncommitted"):
        first = next(outlet.walk(file), None)
        if first is not None:
            return first.schema
    return None


def walk_output(directory: RunDirectory, sink: str, view: View) -> Iterator[Batch]:
    """The output of a sink, a few rows at a time."""
    for piece in output_pieces(directory, sink, view):
        yield from directory.outlet.walk(*piece)


def position_label(position: int) -> str:
    """A position as people read it: `1:17` is row 17 of what sink task 1 has written."""
    return f"{position >> POSITION_BITS}:{position & ((1 << POSITION_BITS) - 1)}"
