"""Opens input that was stored: by `snapline generate`, or by a run that has staged a DataFrame.

What `generate` has stored has a description, and sources by name. What a run has staged lies in its own
directory, as `input/<source>`, and is there as a whole or not at all. Streams lie there as well, and grow.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from snapline import arguments
from snapline.arguments import checked, nearest, optional, span
from snapline.dataflow.feeds.frames import (
    FrameFeed,
    Rate,
    StreamFeed,
    columns_feed,
    is_frame,
    stream_feed,
)
from snapline.dataflow.graph import Dataflow
from snapline.durations import millis
from snapline.errors import ObjectDamaged, ObjectMissing, RunDamaged, UsageError
from snapline.ids import Millis
from snapline.rundir.directory import INPUT, RunDirectory
from snapline.storage.api import Ingress
from snapline.storage.files.ingress import FileIngress, PacedIngress
from snapline.storage.files.places import named_in
from snapline.storage.files.storage import FileStorage
from snapline.storage.parquet.columns import parquet_columns
from snapline.storage.parquet.ingress import ParquetIngress
from snapline.storage.streams.chain import is_stream
from snapline.storage.streams.ingress import StreamIngress
from snapline.wording import plural
from snapline.workload import WORKLOADS
from snapline.workload.common.base import Params
from snapline.workload.common.generated import Generated, StoredAsGenerated

VERSION = 2
DESCRIPTION = "input.json"
Format: TypeAlias = Literal["log", "parquet"]
FORMATS: tuple[Format, ...] = ("log", "parquet")
_OPENED: Mapping[str, Callable[[Path], Ingress]] = {"log": FileIngress, "parquet": ParquetIngress}


class StoredInput(NamedTuple):
    """An input that was stored: its workload, its size, and its sources by name."""

    workload: str
    params: Params
    sources: Mapping[str, Ingress]


def sources_of(workload: str, params: Params) -> dict[str, Ingress]:
    """The sources of a workload by name."""
    if workload not in WORKLOADS:
        raise UsageError(f"there is no workload {workload!r}; {nearest(workload, WORKLOADS)}")
    nodes = WORKLOADS[workload].build(params).graph.nodes.values()
    return {node.name: ingress for node in nodes if (ingress := node.bound) is not None}


def stored_input(directory: Path) -> StoredInput:
    """Open an input that `generate` has stored; reads no records. Raises UsageError."""
    file = directory / DESCRIPTION
    if not file.is_file():
        raise UsageError(f"{directory} holds no input: 'snapline generate' makes one")
    try:
        description = json.loads(file.read_text())
        version, format = description["version"], description["format"]
        if version != VERSION or format not in FORMATS:
            raise UsageError(f"{directory} was written by another version of Snapline")
        workload, params = description["workload"], Params(**description["params"])
        sizes = {name: source["records"] for name, source in description["sources"].items()}
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{file} is damaged: {error!r}") from error
    storage = FileStorage(directory.resolve(), _OPENED[format])
    sources = {name: storage.ingress(name) for name in sizes}
    for name, source in sources.items():
        if sum(source.end(partition) or 0 for partition in range(source.partitions)) != sizes[name]:
            raise UsageError(
                f"{directory / name} has not the {plural(sizes[name], 'record')} it should"
            )
    made = sources_of(workload, params)
    return StoredInput(workload, params, {n: _as_made(s, made.get(n)) for n, s in sources.items()})


def _as_made(stored: Ingress, made: Ingress | None) -> Ingress:
    """Stored records, with the times and watermarks of their generator where records may lag."""
    if isinstance(made, Generated) and made.bound_ms is not None:
        return StoredAsGenerated(stored, made)
    return stored


# Parquet files, and DataFrames that a run has staged.


@checked(
    {
        "path": arguments.path,
        "time": optional(arguments.text),
        "disorder": span(0),
        "rate": optional(arguments.a_rate),
    }
)
def parquet(
    path: str | Path,
    *,
    time: str | None = None,
    disorder: str | Millis = 0,
    rate: Rate | None = None,
) -> FrameFeed:
    """The rows of a Parquet file, or of a directory of them: `flow.source(sl.parquet("bids/"))`.

    A Spark job stages them when a run begins, as it does for a DataFrame; `time`, `disorder` and `rate` are
    as for one (`Dataflow.source`). On a cluster the path has to lead to the same files everywhere.
    """
    place = Path(path).resolve()
    columns = parquet_columns(place)

    def read(spark: Any) -> Any:
        return spark.read.parquet(f"file://{place}")

    asked: dict[str, Any] = {"time": time, "disorder": disorder, "rate": rate}
    return columns_feed(columns, read, **asked, of_session=False)


def _a_frame(value: Any, name: str) -> Any:
    if not is_frame(value):
        raise arguments.refused(
            name, "a streaming DataFrame of Spark's, as spark.readStream makes one", value
        )
    return value


@checked(
    {
        "frame": _a_frame,
        "time": optional(arguments.text),
        "disorder": span(0),
        "idle": span(1),
        "available_now": arguments.flag,
    }
)
def stream(
    frame: Any,
    *,
    time: str | None = None,
    disorder: str | Millis = 0,
    idle: str | Millis = "5s",
    available_now: bool = False,
) -> StreamFeed:
    """The rows of a streaming DataFrame: `flow.source(sl.stream(spark.readStream...))`.

    A query of its own adds each micro-batch to the run's input while the run goes on; its checkpoint lies
    in the run directory. Rows are due as soon as they are there.

    Args:
        frame: the streaming DataFrame.
        time: the column with the times of rows: a timestamp, or a bigint in milliseconds; `time` if there
            is one.
        disorder: how far rows come behind the highest time so far; what comes later may be late.
        idle: after how long without rows the stream no longer holds back what waits for its time.
        available_now: read what is there when the run begins, and end; else the run's `duration` decides.
    """
    return stream_feed(
        frame,
        time=time,
        disorder_ms=millis(disorder, "disorder"),
        idle_ms=millis(idle, "idle"),
        available_now=available_now,
    )


def staged_place(directory: RunDirectory, source: str) -> Path:
    """Where the rows of a source lie once they are staged."""
    return named_in(directory.path / INPUT, source)


def unstaged(flow: Dataflow, directory: RunDirectory | None = None) -> dict[str, FrameFeed]:
    """The DataFrames of a dataflow that a run has not staged yet, by the names of their sources."""
    nodes = flow.graph.nodes.values()
    frames = {node.name: node.ingress for node in nodes if isinstance(node.ingress, FrameFeed)}
    if directory is None:
        return frames
    return {
        n: feed for n, feed in frames.items() if not _is_there(feed, staged_place(directory, n))
    }


def _is_there(feed: FrameFeed, place: Path) -> bool:
    return is_stream(place) if isinstance(feed, StreamFeed) else place.is_dir()


def streams_of(flow: Dataflow | None) -> dict[str, StreamFeed]:
    """The streams of a dataflow, by the names of their sources."""
    nodes = flow.graph.nodes.values() if flow is not None else ()
    return {node.name: node.ingress for node in nodes if isinstance(node.ingress, StreamFeed)}


def with_staged(flow: Dataflow, directory: RunDirectory, cut_ms: Millis | None) -> Dataflow:
    """The dataflow with the rows that the run has staged, as far as it has, in place of DataFrames."""
    missing = unstaged(flow, directory)

    def opened(name: str, old: Any) -> Any:
        if not isinstance(old, FrameFeed) or name in missing:
            return old
        place = staged_place(directory, name)
        try:
            if isinstance(old, StreamFeed):
                return _opened_stream(name, place, old)
            ingress = PacedIngress(place, old.pace, cut_ms)
            _ = ingress.identity  # which reads something of every file
            return ingress
        except (ObjectDamaged, ObjectMissing, ValueError, KeyError, TypeError) as error:
            raise RunDamaged(f"the input in {place} is damaged: {error}") from error

    return flow.with_sources(opened)


def _opened_stream(name: str, place: Path, feed: StreamFeed) -> StreamIngress:
    """The stream of a run, as far as it has come. Raises UsageError if the feed is another one now."""
    ingress = StreamIngress(place)
    about = ingress.about
    began = (dict(about.schema), about.time, about.disorder_ms, about.idle_ms)
    if began != (dict(feed.schema), feed.time, feed.disorder_ms, feed.idle_ms):
        raise UsageError(
            f"the stream of the source '{name}' is not what it was when the run began: its columns, time, "
            "disorder and idle time stay as they were"
        )
    return ingress
