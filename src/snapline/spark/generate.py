"""`generate`: the input of a workload, made by a Spark job and stored; `rundir/stored_input` opens it.

A generator is a pure function of (seed, partition, offset), so any range of records can be made anywhere.
The input is cut into pieces of `PIECE_RECORDS`; each is one Spark task, which makes its records block by
block and writes them into a file of its own. The driver only learns the sizes.

DIR/input.json      what this is: version, workload, its parameters, format, sizes
DIR/<source>/       the records of one source: the embedded log (`storage/files/ingress.py`), or Parquet
                    (`storage/parquet/ingress.py`) with the columns of the
                    source, among them `id` and `time`

All is written into a directory beside DIR, which gets its name when everything is there: a DIR that exists
is complete. On a cluster DIR has to be mounted everywhere under the same path.
"""

import json
import os
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias
from uuid import uuid4

import pyarrow as pa
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from snapline import arguments
from snapline.batch import Batch
from snapline.errors import SnaplineError, UsageError
from snapline.rundir.stored_input import DESCRIPTION, FORMATS, VERSION, Format, sources_of
from snapline.spark.slot_jobs import own_session, slot_failure
from snapline.spark.starting import Aside, stop_session
from snapline.storage.api import Ingress
from snapline.storage.files.ingress import Segment, describe_ingress, write_segment
from snapline.storage.files.places import make_directory, write_whole
from snapline.storage.parquet.arrow import to_spark
from snapline.storage.parquet.ingress import write_part
from snapline.workload.common.base import Params

PIECE_RECORDS = 1 << 20
"""What one Spark task makes: about a second of work."""

BLOCK_RECORDS: Mapping[Format, int] = {"log": 1 << 14, "parquet": 1 << 16}
"""Records per block, which a source later holds in memory; Parquet's row groups pack better if larger."""

PROGRESS_SECONDS = 0.5
Progress: TypeAlias = Callable[[int, int], None]
"""(pieces that are written, pieces)"""


@dataclass(frozen=True, slots=True)
class Piece:
    """A range of one partition of one source: what one Spark task makes."""

    source: str
    partition: int
    segment: int
    start: int
    stop: int


def generate(
    workload: str,
    params: Params,
    target: Path,
    *,
    format: Format = "log",
    spark: SparkSession | None = None,
    on_progress: Progress = lambda done, pieces: None,
) -> dict[str, Any]:
    """Make the input of a workload and store it in a new directory; returns its description."""
    sources = sources_of(workload, params)
    check_target(target)
    if format not in FORMATS:
        raise UsageError(f"there is no format {format!r}: choose {' or '.join(FORMATS)}")
    pieces = [piece for name, source in sources.items() for piece in cut(name, source)]
    with draft_of(target) as draft:
        for name in sources:
            make_directory(draft / name)
        written = _written(spark, sources, pieces, draft, format, on_progress)
        sizes = {n: _complete(n, s, written, draft, format) for n, s in sources.items()}
        description = {
            "version": VERSION,
            "workload": workload,
            "params": {k: v for k, v in asdict(params).items() if k != "cut"},
            "format": format,
            "sources": sizes,
        }
        write_whole(draft / DESCRIPTION, json.dumps(description, indent=2) + "\n")
    return description


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0))


def target_path(text: str) -> Path:
    """The directory that a path or a URL names."""
    return arguments.path(text, "--to")


def check_target(target: Path) -> None:
    """Raise UsageError if something is there already."""
    if target.is_dir() and not any(target.iterdir()):
        return
    if target.exists() or target.is_symlink():
        raise UsageError(f"{target} exists: name another directory, or remove it first")


def cut(name: str, source: Ingress) -> list[Piece]:
    """The pieces of a source; an empty partition is one empty piece, so that its file is there."""
    pieces = []
    for partition in range(source.partitions):
        end = source.end(partition)
        if end is None:
            raise UsageError(f"{name} never ends and cannot be stored")
        for segment, start in enumerate(range(0, max(end, 1), PIECE_RECORDS)):
            stop = min(start + PIECE_RECORDS, end)
            pieces.append(Piece(name, partition, segment, start, stop))
    return pieces


@contextmanager
def draft_of(target: Path) -> Iterator[Path]:
    """A directory that is renamed to `target` when all went well, and removed when not."""
    try:
        draft = target.with_name(f".{target.name}-{uuid4().hex}")
        make_directory(draft)
    except OSError as error:
        raise UsageError(f"cannot write to {target.parent}: {error.strerror}") from error
    try:
        yield draft
        draft.rename(target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


# In the tasks.


def _blocks(source: Ingress, piece: Piece, size: int) -> Iterator[Batch]:
    for start in range(piece.start, piece.stop, size):
        yield source.read(piece.partition, start, min(start + size, piece.stop))


def write_piece(source: Ingress, piece: Piece, directory: Path, format: Format) -> str:
    """Make the records of a piece and write them. Returns what the driver must know of it, as JSON."""
    blocks = _blocks(source, piece, BLOCK_RECORDS[format])
    folder = directory / piece.source
    if format == "log":
        segment = write_segment(folder, piece.partition, piece.segment, blocks)
        return json.dumps({"bytes": segment.bytes, "segment": segment.to_json()})
    path = write_part(folder, piece.partition, piece.segment, source.schema, blocks)
    return json.dumps({"bytes": path.stat().st_size})


# On the driver.


def _written(
    spark: SparkSession | None,
    sources: Mapping[str, Ingress],
    pieces: list[Piece],
    directory: Path,
    format: Format,
    on_progress: Progress,
) -> dict[Piece, dict[str, Any]]:
    """Write all pieces on the session that is given, or on one of our own that an interruption ends."""
    if spark is not None:
        return _write_pieces(spark, sources, pieces, directory, format, on_progress)
    session = own_session(max(1, cores() - 1))
    try:
        call = partial(_write_pieces, session, sources, pieces, directory, format, on_progress)
        return Aside(call).result()
    finally:
        stop_session(session)


def _write_pieces(
    spark: SparkSession,
    sources: Mapping[str, Ingress],
    pieces: list[Piece],
    directory: Path,
    format: Format,
    on_progress: Progress,
) -> dict[Piece, dict[str, Any]]:
    where = str(directory.resolve())

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            numbers = batch.column(0).to_pylist()
            for number in numbers:
                piece = pieces[number]
                told = write_piece(sources[piece.source], piece, Path(where), format)
                yield to_spark(Batch.of(piece=[number], told=[told]))

    frame = spark.range(0, len(pieces), 1, len(pieces))
    with _watched(spark.sparkContext, len(pieces), on_progress):
        try:
            rows = frame.mapInArrow(write, "piece long, told string").collect()
        except PySparkException as error:
            raise SnaplineError(f"the input could not be written: {job_reason(error)}") from error
    return {pieces[row.piece]: json.loads(row.told) for row in rows}


def job_reason(error: Exception) -> str:
    """Why a Spark job failed, in one line: the last line of a Python traceback, or Spark's message."""
    story = slot_failure(error).story
    python = story.partition("\n\n")[0].strip().splitlines()
    return python[-1] if python else story


@contextmanager
def _watched(context: SparkContext, pieces: int, on_progress: Progress) -> Iterator[None]:
    """Report how many tasks are done while the job runs."""
    group = f"snapline-generate-{uuid4().hex[:8]}"
    context.setJobGroup(group, "snapline generate", interruptOnCancel=True)
    over = threading.Event()

    def watch() -> None:
        tracker = context.statusTracker()
        while not over.wait(PROGRESS_SECONDS):
            infos = [tracker.getJobInfo(number) for number in tracker.getJobIdsForGroup(group)]
            stages = [tracker.getStageInfo(n) for info in infos if info for n in info.stageIds]
            on_progress(sum(stage.numCompletedTasks for stage in stages if stage), pieces)

    watcher = threading.Thread(target=watch, name=group, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
        context.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]
    # The watcher may have been about to report fewer pieces: it has ended, so this is the last word.
    on_progress(pieces, pieces)


def _complete(
    name: str,
    source: Ingress,
    written: Mapping[Piece, Mapping[str, Any]],
    directory: Path,
    format: Format,
) -> dict[str, Any]:
    """Describe a source whose pieces are all there."""
    pieces = sorted(
        (piece for piece in written if piece.source == name),
        key=lambda piece: (piece.partition, piece.segment),
    )
    if format == "log":
        segments: list[list[Segment]] = [[] for _ in range(source.partitions)]
        for piece in pieces:
            segments[piece.partition].append(Segment.from_json(written[piece]["segment"]))
        describe_ingress(directory / name, source.schema, segments)
    return {
        "partitions": source.partitions,
        "records": sum(piece.stop - piece.start for piece in pieces),
        "bytes": sum(written[piece]["bytes"] for piece in pieces),
        "schema": dict(source.schema),
    }
