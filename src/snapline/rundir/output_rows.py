"""The output of a run by the names of its sinks: which there are, their columns, and their rows.

Whoever reads output, a Spark task or the command line, reads it a few rows at a time.
"""

from collections.abc import Iterator

from snapline.batch import Batch, Schema
from snapline.errors import UsageError
from snapline.ids import TaskId
from snapline.protocols import PROTOCOLS
from snapline.rundir.directory import RunDirectory
from snapline.storage.api import OutputPiece, View

POSITION_BITS = 40
"""The position of a row of output is the index of its sink task above this many bits of row number."""


def public_view(protocol: str) -> View:
    """Which rows are public: the committed ones, or all that were written if no line makes rows public."""
    return "uncommitted" if PROTOCOLS[protocol].publishes_at_once else "committed"


def sinks_of(directory: RunDirectory) -> dict[str, list[TaskId]]:
    """The sinks of a run, each with those of its tasks that have opened a file by now.

    `run.json` names them from the beginning; where it does not, only those with a file are known.
    """
    named = directory.spec().get("sinks")
    sinks: dict[str, list[TaskId]] = {
        str(name): [] for name in (named if isinstance(named, list) else ())
    }
    for task in directory.output.tasks():
        sinks.setdefault(task.rpartition("/")[0], []).append(task)
    return sinks


def sink_named(directory: RunDirectory, sink: str | None, how: str) -> str:
    """The sink of this name; without a name, the only one there is. Raises UsageError.

    `how` is how the user names one: `--sink`.
    """
    known = list(sinks_of(directory))
    if not known:
        raise UsageError(f"{directory.name} has written no output")
    if sink is None and len(known) > 1:
        raise UsageError(f"{directory.name} has several sinks: say {how} {' or '.join(known)}")
    if sink is not None and sink not in known:
        raise UsageError(f"{directory.name} has no sink {sink!r}: there is {', '.join(known)}")
    return sink or known[0]


def output_pieces(directory: RunDirectory, sink: str, view: View) -> list[OutputPiece]:
    """The pieces of files that hold the rows of a sink in a view, in order."""
    tasks, output = sinks_of(directory)[sink_named(directory, sink, "")], directory.output
    return [piece for task in tasks for piece in output.pieces(task, view)]


def sink_schema(directory: RunDirectory, sink: str) -> Schema | None:
    """The kinds of a sink's columns, from the first rows of any of its files."""
    for piece in output_pieces(directory, sink, "uncommitted"):
        first = next(directory.output.read(piece), None)
        if first is not None:
            return first.rows.schema
    return None


def walk_output(directory: RunDirectory, sink: str, view: View) -> Iterator[Batch]:
    """The output of a sink, a few rows at a time."""
    for piece in output_pieces(directory, sink, view):
        for written in directory.output.read(piece):
            yield written.rows


def position_label(position: int) -> str:
    """A position as people read it: `1:17` is row 17 of what sink task 1 has written."""
    return f"{position >> POSITION_BITS}:{position & ((1 << POSITION_BITS) - 1)}"
