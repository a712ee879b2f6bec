"""Stages the DataFrames of a run before its slots start: once, in the run's own directory.

A run that goes on finds them there and stages nothing, so its input is what it was at the first start, byte
for byte, whatever has become of the DataFrame. A run that was killed before all were there stages the rest.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from snapline.dataflow.feeds.frames import FrameFeed, StreamFeed
from snapline.dataflow.graph import Dataflow
from snapline.dataflow.meanings import sink_meanings
from snapline.errors import UsageError
from snapline.rundir.directory import MEANINGS, STAGED, RunDirectory
from snapline.rundir.spec import Spec
from snapline.rundir.stored_input import staged_place, unstaged
from snapline.runs.sources.streams import check_streams, make_stream
from snapline.spark.staging import Staging, stage


def check_frames(
    flow: Dataflow | None,
    spec: Spec,
    spark: SparkSession | None,
    directory: RunDirectory | None = None,
) -> None:
    """Raise UsageError if the DataFrames of a dataflow cannot be its input; reads no rows.

    Those that have still to be staged, and streams, need the session that they belong to.
    """
    if flow is None:
        return
    sink_meanings(flow)
    check_streams(flow, spec, spark, directory)
    if spark is not None:
        return
    for name, feed in unstaged(flow, directory).items():
        if feed.of_session:
            raise UsageError(
                f"the source '{name}' is a DataFrame, which needs the Spark session that it belongs to: "
                "say sl.run(flow, spark)"
            )


def said_of_frames(flow: Dataflow | None, origin: RunDirectory | None) -> dict[str, Any]:
    """What `run.json` says of the DataFrames of a new run: which are staged, and what its output means.

    A fork has the staged rows of its origin, and says of them what that says.
    """
    if origin is not None:
        return {name: value for name, value in origin.spec().items() if name in (STAGED, MEANINGS)}
    frames = unstaged(flow) if flow is not None else {}
    meanings = sink_meanings(flow) if flow is not None and frames else {}
    said = {STAGED: list(frames), MEANINGS: {name: dict(m) for name, m in meanings.items()}}
    return {name: value for name, value in said.items() if value}


def stage_sources(flow: Dataflow, directory: RunDirectory, spark: SparkSession, slots: int) -> None:
    """Stage the DataFrames that are not staged yet. Raises UsageError if one cannot be an input.

    Of a stream it is fixed what it is, and in how many partitions; its rows are still to come.
    """
    missing: Mapping[str, FrameFeed] = unstaged(flow, directory)
    for name, feed in missing.items():
        if isinstance(feed, StreamFeed):
            make_stream(feed, staged_place(directory, name), slots)
            continue
        staging = Staging(name, feed.columns, feed.schema, feed.time, feed.disorder_ms, slots)
        if not stage(partial(feed.read, spark), staged_place(directory, name), staging):
            raise UsageError(f"the source '{name}' has no rows: a run needs at least one")
