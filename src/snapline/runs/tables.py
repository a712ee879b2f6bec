"""What a run left, as Spark DataFrames: output, state, channel logs, journal.

The files are Snapline's own (columns with a schema beside them), so executors read them: the driver only
makes a list of files, each of which becomes one Spark task, and nothing passes through it. On a cluster the
run directory has to be mounted everywhere under the same path. The journal is JSON lines, which Spark reads
itself.

An empty DataFrame has the columns of what would be in it, if any file says what those are. Of a sink that
never wrote a row, and of state in which no task has a row, nobody knows: that DataFrame has no columns.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from snapline.batch import Batch, Schema
from snapline.dataflow.chain import owner_of
from snapline.dataflow.deploy import Deployment, deploy
from snapline.dataflow.graph import Dataflow
from snapline.dataflow.operators.operator import Capture, Operator
from snapline.engine.coordinator.ledger import Chain, read_last
from snapline.engine.slot.checkpoints import key_of
from snapline.engine.slot.task import WATERMARKS
from snapline.errors import UsageError
from snapline.ids import TaskId
from snapline.rundir.directory import RunDirectory
from snapline.rundir.inputs import with_inputs
from snapline.rundir.output_rows import output_pieces, sink_schema
from snapline.rundir.program import program_of_run
from snapline.rundir.spec import spec_of
from snapline.storage.api import OutputPiece, View
from snapline.storage.codec import decode_message, decode_snapshot
from snapline.storage.files.frames import walk
from snapline.storage.parquet.arrow import spark_schema, to_spark

ROWS_AT_ONCE = 1 << 16
TASK = "_task"
"""The column that names the task to whose state a row belongs."""


def _read_on_executors(
    spark: SparkSession,
    pieces: Sequence[Any],
    read: Callable[[Any], Iterator[Batch]],
    kinds: Schema,
) -> DataFrame:
    """A DataFrame of what `read` finds in each piece, one Spark task per piece."""

    def tasks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for found in read(pieces[number]):
                    for start in range(0, len(found), ROWS_AT_ONCE):
                        yield to_spark(found.slice(start, start + ROWS_AT_ONCE), kinds)

    numbers = spark.range(0, len(pieces), 1, max(1, len(pieces)))
    return numbers.mapInArrow(tasks, spark_schema(kinds))


def _nothing(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([], StructType([]))


# Output.


def output(
    spark: SparkSession, directory: RunDirectory, sink: str, view: View = "committed"
) -> DataFrame:
    """The output of a sink: what was published, or all that any life of it ever wrote."""
    pieces = output_pieces(directory, sink, view)
    kinds = sink_schema(directory, sink)
    if kinds is None:
        return _nothing(spark)
    where = str(directory.path)

    def read(piece: OutputPiece) -> Iterator[Batch]:
        return (written.rows for written in RunDirectory(Path(where)).output.read(piece))

    return _read_on_executors(spark, pieces, read, kinds)


# State.


def state(
    spark: SparkSession,
    directory: RunDirectory,
    operator: str | None = None,
    part: str | None = None,
    *,
    flow: Dataflow | None = None,
) -> DataFrame:
    """The state at the last committed line: one part of an operator, or a list of what there is.

    A part has its own columns and `_task`. `part` may be left out where an operator has only one. The list
    has operator, task, part, rows and columns. `flow` is the dataflow, for runs that were not of a
    workload: a file that only the run directory names is not executed.
    """
    deployment = _deployment(directory, flow)
    chains = _chains(directory, deployment)
    listing = _listing(spark, directory, deployment, chains)
    if operator is None:
        return listing
    rows = sorted(listing.collect(), key=lambda row: (str(row.operator), str(row.task)))
    tasks = {row.task for row in rows if row.operator == operator}
    if not tasks:
        known = ", ".join({row.operator: None for row in rows}) or "none has"
        raise UsageError(f"no state of {operator!r} was committed; operators with state: {known}")
    own = {task: chain for task, chain in chains.items() if task in tasks}
    parts = _parts([row for row in rows if row.operator == operator])
    if part is None and len(parts) == 1:
        part = next(iter(parts))
    if part is None or part not in parts:
        raise UsageError(f"which part of the state of {operator}? there is {', '.join(parts)}")
    kinds = parts[part]
    if not kinds:
        return _nothing(spark)
    where, wanted = str(directory.path), (operator, part)

    def read(piece: _Kept) -> Iterator[Batch]:
        found = _restore(where, piece)[wanted]
        if len(found):
            yield found.with_columns(**{TASK: Batch.of(x=[piece[0]] * len(found))["x"]})

    return _read_on_executors(spark, _kept(deployment, own), read, {**kinds, TASK: "str"})


_Kept: TypeAlias = tuple[TaskId, Chain, Callable[[], Operator]]


def _deployment(directory: RunDirectory, flow: Dataflow | None) -> Deployment:
    spec = spec_of(directory)
    return with_inputs(deploy(program_of_run(spec, flow).flow, spec.slots, lean=True))


def _chains(directory: RunDirectory, deployment: Deployment) -> dict[TaskId, Chain]:
    """The checkpoints of the last committed line, for each task that has state."""
    last = read_last(directory.store, deployment.fingerprint, directory.identity)
    chains: Mapping[TaskId, Chain] = last.chains if last is not None else {}
    return {t: c for t, c in chains.items() if c and deployment.plans[t].stateful}


def _kept(deployment: Deployment, chains: Mapping[TaskId, Chain]) -> list[_Kept]:
    return [(task, chain, deployment.plans[task].operator) for task, chain in chains.items()]


def _restore(run: str, kept: _Kept) -> Mapping[tuple[str, str], Batch]:
    """The whole state of a task, by operator and part.

    The operators are built and restored for it, because only they know how deltas add up.
    """
    task, chain, build = kept
    store = RunDirectory(Path(run)).store
    loaded = [decode_snapshot(store.get(key_of(meta), meta.digest)) for meta in chain]
    captures = [
        Capture(s.full, {name: part for name, part in s.parts.items() if name != WATERMARKS})
        for s in loaded
    ]
    operator = build()
    operator.restore(captures)
    parts = operator.capture(full=True).parts
    return {owner_of(task.rpartition("/")[0], name): part for name, part in parts.items()}


_LISTING: Schema = dict.fromkeys(("operator", "task", "part"), "str") | {
    "rows": "int64",
    "columns": "str",
}


def _listing(
    spark: SparkSession,
    directory: RunDirectory,
    deployment: Deployment,
    chains: Mapping[TaskId, Chain],
) -> DataFrame:
    where = str(directory.path)

    def read(piece: _Kept) -> Iterator[Batch]:
        task, parts = piece[0], _restore(where, piece)
        if parts:
            yield Batch.of(
                operator=[operator for operator, _ in parts],
                task=[task] * len(parts),
                part=[part for _, part in parts],
                rows=[len(batch) for batch in parts.values()],
                columns=[json.dumps(batch.schema) for batch in parts.values()],
            )

    return _read_on_executors(spark, _kept(deployment, chains), read, _LISTING)


def _parts(rows: Iterable[Row]) -> dict[str, Schema]:
    """The parts of one operator, with the kinds of their columns where any task has rows."""
    parts: dict[str, Schema] = {}
    for row in rows:
        parts[row.part] = parts.get(row.part) or json.loads(row.columns)
    return parts


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


def channel_log(spark: SparkSession, directory: RunDirectory) -> DataFrame:
    """The messages that the senders' logs still hold, one row each, without their records.

    `bytes` is the size of the whole entry. Where several lives logged a seq, each has a row.
    """
    paths = sorted(str(path) for path in (directory.path / "logs").glob("*.log"))
    return _read_on_executors(spark, paths, _read_log, _LOG)


def _read_log(path: str) -> Iterator[Batch]:
    rows: list[tuple[Any, ...]] = []
    name = Path(path).name
    for payload in walk(Path(path)):
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

_MESSAGE = "struct<channel: string, seq: bigint, batch: struct<records: bigint>>"
_WHAT = f"struct<type: string, incarnation: bigint, channel: string, message: {_MESSAGE}>"
_ENTRY = f"""type string, at_us bigint, actor string, epoch bigint, incarnation bigint, what {_WHAT},
    channel string, seq bigint, records bigint,
    event struct<type: string, channel: string, message: {_MESSAGE}>, _damaged string"""


def journal(spark: SparkSession, directory: RunDirectory) -> DataFrame:
    """What happened in all processes of a run, one row per entry; `body` is the entry itself, as JSON.

    Columns: type, at_us, actor, epoch, incarnation, what, channel, seq, records, event, body. `what` is the
    class of `journal.happenings` that says what happened, as in `SlotLost`. What an entry does not have is
    null; channel, seq and records are those of its message. `spark.read.json` reads the same files with all
    that is in them, and headers and cut lines, too.
    """
    lines = spark.read.text(str(directory.path / "journal"))
    options = {"columnNameOfCorruptRecord": "_damaged"}
    read = lines.select(
        F.from_json("value", _ENTRY, options).alias("e"), F.col("value").alias("body")
    )
    # The first line of a file is its header; the last may have been cut by a kill.
    whole = read.where("e._damaged is null and e.type is not null")
    messages = ("e.event.message", "e.what.message")
    places = ("e", "e.event", "e.what", *messages)
    return whole.select(
        *(f"e.{name}" for name in ("type", "at_us", "actor", "epoch")),
        F.coalesce("e.incarnation", "e.what.incarnation").alias("incarnation"),
        F.col("e.what.type").alias("what"),
        F.coalesce(*(f"{place}.channel" for place in places)).alias("channel"),
        F.coalesce("e.seq", *(f"{m}.seq" for m in messages)).alias("seq"),
        F.coalesce("e.records", *(f"{m}.batch.records" for m in messages)).alias("records"),
        F.col("e.event.type").alias("event"),
        "body",
    )
