"""Opens input that was stored: by `snapline generate`, or by a run that has staged a DataFrame.

What `generate` has stored has a description, and sources by name. What a run has staged lies in its own
directory, as `input/<source>`, and is there as a whole or not at all.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from snapline import arguments
from snapline.arguments import checked, nearest, optional, span
from snapline.dataflow.frames import FrameFeed, Rate, columns_feed
from snapline.dataflow.graph import Dataflow
from snapline.errors import ObjectDamaged, ObjectMissing, RunDamaged, UsageError
from snapline.ids import Millis
from snapline.rundir.directory import INPUT, RunDirectory
from snapline.rundir.spec import a_rate
from snapline.storage.api import Ingress
from snapline.storage.files.ingress import FileIngress, PacedIngress
from snapline.storage.files.places import named_in
from snapline.storage.files.storage import FileStorage
from snapline.storage.parquet.columns import parquet_columns
from snapline.storage.parquet.ingress import ParquetIngress
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
        "rate": optional(a_rate),
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
        name: feed for name, feed in frames.items() if not staged_place(directory, name).is_dir()
    }


def with_staged(flow: Dataflow, directory: RunDirectory, cut_ms: Millis | None) -> Dataflow:
    """The dataflow with the rows that the run has staged, as far as it has, in place of DataFrames."""
    missing = unstaged(flow, directory)

    def opened(name: str, old: Any) -> Any:
        if not isinstance(old, FrameFeed) or name in missing:
            return old
        place = staged_place(directory, name)
        try:
            ingress = PacedIngress(place, old.pace, cut_ms)
            _ = ingress.identity  # which reads something of every file
            return ingress
        except (ObjectDamaged, ObjectMissing, ValueError, KeyError, TypeError) as error:
            raise RunDamaged(f"the input in {place} is damaged: {error}") from error

    return flow.with_sources(opened)
