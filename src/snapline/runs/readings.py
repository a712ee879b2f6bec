"""What a run left, as something that any process can read: output, state, channel logs, journal, seconds.

A `Reading` has the columns as Spark knows them, and pieces, mostly one per file, each of which a process
reads by itself. So whoever plans only makes a list of files, and no row passes through it. On a cluster the
run directory has to be mounted everywhere under the same path. Two read this way: DataFrames of a run that
a program holds (`tables`), and Spark's own `spark.read.format("snapline")` (`data_source`).

If no file says which columns there are, a reading has no schema. Of a sink that never wrote a row, and of
state in which no task has a row, nobody knows.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import pyarrow as pa

from snapline.batch import Batch, Schema
from snapline.dataflow.chain import owner_of
from snapline.dataflow.deploy import Deployment, deploy
from snapline.dataflow.graph import Dataflow
from snapline.dataflow.operators.operator import Operator
from snapline.engine.coordinator.ledger import Chain, read_last
from snapline.engine.groups.loading import load_captures
from snapline.engine.slot.checkpoints import key_of
from snapline.engine.slot.task import OWN_PARTS
from snapline.errors import RowsDeleted, UsageError
from snapline.ids import TaskId
from snapline.judge.history import driver_entries
from snapline.metrics.seconds_table import SecondRow, second_rows
from snapline.rundir.directory import RunDirectory
from snapline.rundir.inputs import with_inputs
from snapline.rundir.output_rows import output_pieces, sink_schema, sinks_of
from snapline.rundir.program import program_of_run
from snapline.rundir.spec import spec_of
from snapline.runtime.driver.timeline import published_times
from snapline.storage.api import OutputPiece, OutputReader, View
from snapline.storage.codec import decode_message, decode_snapshot
from snapline.storage.column_types import Meanings
from snapline.storage.files.frames import walk
from snapline.storage.files.log import seed_of
from snapline.storage.parquet.arrow import spark_schema, to_spark

ROWS_AT_ONCE = 1 << 16
TASK = "_task"
"""The column that names the task to whose state a row belongs."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Something that a run left. Everything in it can be sent to other processes."""

    schema: str | None  # the columns as Spark takes them (DDL); None: nobody knows them
    pieces: Sequence[Any]
    read: Callable[[Any], Iterator[pa.RecordBatch]]  # what a piece holds, a few rows at a time


def _of_batches(
    kinds: Schema | None,
    pieces: Sequence[Any],
    read: Callable[[Any], Iterator[Batch]],
    meanings: Meanings = MappingProxyType({}),
) -> Reading:
    """The reading of pieces that hold columns of Snapline, with these kinds.

    Numbers that stand for a date, a timestamp or a decimal become what they mean.
    """
    meant = dict(meanings)  # which can be sent to other processes

    def read_arrow(piece: Any) -> Iterator[pa.RecordBatch]:
        for found in read(piece):
            for start in range(0, len(found), ROWS_AT_ONCE):
                yield to_spark(found.slice(start, start + ROWS_AT_ONCE), kinds, meant)

    schema = None if kinds is None else spark_schema(kinds, meant)
    return Reading(schema, pieces, read_arrow)


# Output.


def output(
    directory: RunDirectory, sink: str, view: View = "committed", *, lenient: bool = False
) -> Reading:
    """The output of a sink: what was published, or all that any life of it ever wrote."""
    return output_in(directory, sink, output_pieces(directory, sink, view), lenient=lenient)


def output_in(
    directory: RunDirectory, sink: str, pieces: Sequence[OutputPiece], *, lenient: bool = False
) -> Reading:
    """The output of a sink that lies in these pieces.

    Rows that are deleted before they are read are an error, or, if `lenient`, are left out.
    """
    where = str(directory.path)

    def read(piece: OutputPiece) -> Iterator[Batch]:
        output = RunDirectory(Path(where)).output
        while True:
            try:
                for written in output.read(piece):
                    yield written.rows
                    piece = piece._replace(start=written.first + len(written.rows))
                return
            except RowsDeleted as deleted:
                if not lenient or piece.stop is None:
                    raise
                piece = piece._replace(start=min(deleted.through, piece.stop))

    meanings = directory.meanings.get(sink, {})
    return _of_batches(sink_schema(directory, sink), pieces, read, meanings)


def output_between(
    directory: RunDirectory, output: OutputReader, sink: str, after: int, through: int
) -> list[OutputPiece]:
    """The pieces of what the manifests after < n <= through published of a sink: always the same."""
    tasks = sinks_of(directory)[sink]
    return [piece for task in tasks for piece in output.pieces_between(task, after, through)]


# State.

_Kept: TypeAlias = tuple[TaskId, Chain, Callable[[], Operator]]
Listed: TypeAlias = Mapping[str, Any]
"""A row of the list of what state there is: operator, task, part, rows, and its columns, as JSON."""

_LISTING: Schema = dict.fromkeys(("operator", "task", "part"), "str") | {
    "rows": "int64",
    "columns": "str",
}


class KeptState:
    """The state of a run at its last committed line.

    `flow` is the dataflow, for runs that were not of a workload: a file that only the run directory names
    is not executed.
    """

    def __init__(self, directory: RunDirectory, flow: Dataflow | None = None) -> None:
        spec = spec_of(directory)
        program = program_of_run(spec, flow, directory)
        deployment = with_inputs(
            deploy(program.flow, spec.slots, lean=True, pools=dict(spec.pools))
        )
        self._where = str(directory.path)
        self._kept = _kept(directory, deployment)

    def listing(self) -> Reading:
        """The list of what there is: one row for each part of the state of each task."""
        where = self._where
        return _of_batches(_LISTING, self._kept, lambda kept: _listed(kept, _restore(where, kept)))

    def part(self, listed: Iterable[Listed], operator: str, part: str | None) -> Reading:
        """One part of an operator's state: its own columns, and `_task`. Raises UsageError.

        `listed` are the rows of the list, of which no more is read than is needed. `part` may be None where
        an operator has only one.
        """
        part, kinds, tasks = _chosen(listed, operator, part)
        names = {task.rpartition("/")[0] for task in tasks}
        own = [kept for kept in self._kept if kept[0].rpartition("/")[0] in names]
        where, wanted = self._where, (operator, part)

        def read(kept: _Kept) -> Iterator[Batch]:
            found = _restore(where, kept)[wanted]
            if len(found):
                yield found.with_columns(**{TASK: Batch.of(x=[kept[0]] * len(found))["x"]})

        return _of_batches({**kinds, TASK: "str"} if kinds else None, own, read)


def _kept(directory: RunDirectory, deployment: Deployment) -> list[_Kept]:
    """The checkpoints of the last committed line, for each task that has state."""
    last = read_last(directory.store, deployment.fingerprint, directory.identity)
    chains: Mapping[TaskId, Chain] = last.chains if last is not None else {}
    plans = deployment.plans
    stateful = [(task, chain) for task, chain in chains.items() if chain and plans[task].stateful]
    return [(task, chain, plans[task].operator) for task, chain in stateful]


def _restore(run: str, kept: _Kept) -> Mapping[tuple[str, str], Batch]:
    """The whole state of a task, by operator and part.

    The operators are built and restored for it, because only they know how deltas add up.
    """
    task, chain, build = kept
    store = RunDirectory(Path(run)).store
    loaded = [decode_snapshot(store.get(key_of(meta), meta.digest)) for meta in chain]
    captures = load_captures(store, loaded, but=OWN_PARTS)
    operator = build()
    operator.restore(captures)
    parts = operator.capture(full=True).parts
    return {owner_of(task.rpartition("/")[0], name): part for name, part in parts.items()}


def _listed(kept: _Kept, parts: Mapping[tuple[str, str], Batch]) -> Iterator[Batch]:
    if parts:
        yield Batch.of(
            operator=[operator for operator, _ in parts],
            task=[kept[0]] * len(parts),
            part=[part for _, part in parts],
            rows=[len(batch) for batch in parts.values()],
            columns=[json.dumps(batch.schema) for batch in parts.values()],
        )


def _chosen(
    listed: Iterable[Listed], operator: str, part: str | None
) -> tuple[str, Schema, list[TaskId]]:
    """The part that is meant, the kinds of its columns if any task has rows, and tasks that have it."""
    parts: dict[str, Schema] = {}
    tasks: list[TaskId] = []
    others: dict[str, None] = {}
    for row in listed:
        if row["operator"] != operator:
            others[row["operator"]] = None
            continue
        tasks.append(TaskId(row["task"]))
        parts[row["part"]] = parts.get(row["part"]) or json.loads(row["columns"])
        if part is not None and parts.get(part):
            return part, parts[part], tasks
    if not tasks:
        known = ", ".join(others) or "none has"
        raise UsageError(f"no state of {operator!r} was committed; operators with state: {known}")
    if part is None and len(parts) == 1:
        part = next(iter(parts))
    if part is None or part not in parts:
        raise UsageError(f"which part of the state of {operator}? there is {', '.join(parts)}")
    return part, parts[part], tasks


# Channel logs.

_LOG: Schema = {
    "channel": "str",
    "seq": "int64",
    "epoch": "int64",
    "records": "int64",
    "bytes": "int64",
    "header_bytes": "int64",
    "file": "str",
}


def channel_log(directory: RunDirectory) -> Reading:
    """The messages that the senders' logs still hold, one row each, without their records.

    `bytes` is the size of the whole entry. Where several lives logged a seq, each has a row.
    """
    paths = sorted(str(path) for path in (directory.path / "logs").glob("*.log"))
    return _of_batches(_LOG, paths, _read_log)


def _read_log(path: str) -> Iterator[Batch]:
    rows: list[tuple[Any, ...]] = []
    name = Path(path).name
    for payload in walk(Path(path), seed_of(Path(path))):
        m = decode_message(payload)
        size = len(payload)
        rows.append((m.channel, m.seq, m.epoch, len(m.batch), size, len(m.header), name))
        if len(rows) == ROWS_AT_ONCE:
            yield _as_batch(rows)
            rows = []
    if rows:
        yield _as_batch(rows)


def _as_batch(rows: list[tuple[Any, ...]]) -> Batch:
    return Batch.of(**dict(zip(_LOG, zip(*rows, strict=True), strict=True)))


# The journal.

_TEXT, _NUMBER = pa.string(), pa.int64()
_ENTRY: pa.Schema = pa.schema(
    [
        ("type", _TEXT),
        ("at_us", _NUMBER),
        ("actor", _TEXT),
        ("epoch", _NUMBER),
        ("incarnation", _NUMBER),
        ("what", _TEXT),
        ("channel", _TEXT),
        ("seq", _NUMBER),
        ("records", _NUMBER),
        ("event", _TEXT),
        ("body", _TEXT),
    ]
)
_PLACES: Mapping[str, Sequence[tuple[str, ...]]] = {
    **{name: [(name,)] for name in ("type", "at_us", "actor", "epoch")},
    "incarnation": [("incarnation",), ("what", "incarnation")],
    "what": [("what", "type")],
    "channel": [
        (*place, "channel")
        for place in ((), ("event",), ("what",), ("event", "message"), ("what", "message"))
    ],
    "seq": [("seq",), ("event", "message", "seq"), ("what", "message", "seq")],
    "records": [
        ("records",),
        ("event", "message", "batch", "records"),
        ("what", "message", "batch", "records"),
    ],
    "event": [("event", "type")],
}
"""Where an entry has the value of a column: in the first of these places that has one."""


def journal(directory: RunDirectory) -> Reading:
    """What happened in all processes of a run, one row per entry; `body` is the entry itself, as JSON.

    `what` is the class of `journal.happenings` that says what happened, as in `SlotLost`. What an entry
    does not have is null; channel, seq and records are those of its message.
    """
    types = {_TEXT: "string", _NUMBER: "bigint"}
    schema = ", ".join(f"{field.name} {types[field.type]}" for field in _ENTRY)
    paths = sorted(str(path) for path in (directory.path / "journal").glob("*.jsonl"))
    return Reading(schema, paths, _read_journal)


def _read_journal(path: str) -> Iterator[pa.RecordBatch]:
    # A journal without an end may be dropped meanwhile: nobody can look at it any more.
    with (
        suppress(FileNotFoundError),
        Path(path).open(encoding="utf-8", errors="replace") as lines,
    ):
        entries = (entry for line in lines if (entry := _entry(line.rstrip("\n"))) is not None)
        while some := list(islice(entries, ROWS_AT_ONCE)):
            yield pa.RecordBatch.from_pylist(some, schema=_ENTRY)


def _entry(line: str) -> dict[str, Any] | None:
    """A line as a row; None for the header of a file, and for a line that a kill has cut."""
    try:
        read = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(read, dict) or "type" not in read:
        return None
    return {"body": line} | {name: _value(read, name) for name in _PLACES}


def _value(entry: Mapping[str, Any], name: str) -> str | int | None:
    """What a column has of an entry; None if nothing of the type of the column is there."""
    is_text = _ENTRY.field(name).type == _TEXT
    for place in _PLACES[name]:
        found: Any = entry
        for step in place:
            found = found.get(step) if isinstance(found, dict) else None
        if is_text and isinstance(found, str):
            return found
        if not is_text and type(found) is int and abs(found) < 1 << 63:
            return found
    return None


# Seconds.

_SECOND: pa.Schema = pa.schema(
    [(name, pa.float64() if name.endswith("_ms") else pa.int64()) for name in SecondRow._fields]
)


def seconds(directory: RunDirectory) -> Reading:
    """What was measured in each second, of all slots together (null) and of each slot."""
    kinds = {pa.int64(): "bigint", pa.float64(): "double"}
    schema = ", ".join(f"{field.name} {kinds[field.type]}" for field in _SECOND)
    return Reading(schema, [str(directory.path)], _read_seconds)


def _read_seconds(path: str) -> Iterator[pa.RecordBatch]:
    rows = (row._asdict() for row in measured_seconds(RunDirectory(Path(path))))
    while some := list(islice(rows, ROWS_AT_ONCE)):
        yield pa.RecordBatch.from_pylist(some, schema=_SECOND)


def measured_seconds(directory: RunDirectory) -> Iterator[SecondRow]:
    """The rows of the table of seconds, from the journals and the published rows of a run.

    Raises UsageError if a part of the journals cannot be read.
    """
    entries, gap = driver_entries(directory)
    if gap is not None:
        raise UsageError(f"not all seconds of {directory.name} are known: {gap}")
    tasks = [task for tasks in sinks_of(directory).values() for task in tasks]
    return second_rows(entries, published_times(directory.output, tasks))
