"""The streams of a run: checked before it starts, and their queries started, watched, stopped and sealed.

A stream is made once (`make_stream`); from then on it is clear what it is, and how many partitions it has.
While the run goes on, `StreamQueries` has a Spark query for each stream that is not sealed. A query that
fails ends the run. One that comes to its end, or has read for as long as the run was asked to, is stopped,
and its chain is sealed: then slots read what is there, and the job ends as any other does.

Stopping and sealing are two things. A run that is stopped without being sealed goes on where it was.
"""

import threading
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from snapline.dataflow.feeds.frames import StreamFeed
from snapline.dataflow.graph import Dataflow
from snapline.errors import SnaplineError, StreamFailed, UsageError
from snapline.ids import Millis
from snapline.rundir.directory import RunDirectory
from snapline.rundir.spec import Spec
from snapline.rundir.stored_input import staged_place, streams_of
from snapline.runs.sources.upkeep import UpkeepThread
from snapline.runtime.driver.driver import Driver
from snapline.spark.cores import check_cores
from snapline.spark.staging import Staging
from snapline.spark.stream_query import StreamWriter, start_query, stop_query, why_ended
from snapline.storage.streams.chain import (
    StreamChain,
    describe_stream,
    described_stream,
    is_stream,
)
from snapline.storage.streams.upkeep import StreamUpkeep

POLL_S: Final = 0.1


def check_streams(
    flow: Dataflow, spec: Spec, spark: SparkSession | None, directory: RunDirectory | None
) -> None:
    """Raise UsageError if the streams of a dataflow cannot be read; starts nothing.

    Those that a run has read to their end need neither a session nor a core.
    """
    going_on = _unsealed(flow, directory)
    for name, feed in going_on.items():
        if spark is None:
            raise UsageError(
                f"the source '{name}' is a stream, which needs the Spark session that it belongs to: say "
                "sl.run(flow, spark)"
            )
        if feed.read(spark).sparkSession.sparkContext is not spark.sparkContext:
            raise UsageError(
                f"the source '{name}' is a stream of another Spark session than the one that was given, "
                "or of one that was stopped: make both with the same session"
            )
    if going_on:
        check_cores(spec, spark, list(going_on))


def _unsealed(flow: Dataflow, directory: RunDirectory | None) -> dict[str, StreamFeed]:
    """The streams of a dataflow that a run has not read to their end."""
    streams = streams_of(flow)
    if directory is None:
        return streams
    places = {name: staged_place(directory, name) for name in streams}
    return {
        name: feed
        for name, feed in streams.items()
        if not is_stream(places[name]) or not StreamChain(places[name]).sealed
    }


def make_stream(feed: StreamFeed, place: Path, partitions: int) -> None:
    """Fix what a stream is, durably; from now on it can be opened."""
    describe_stream(
        place,
        feed.schema,
        time=feed.time,
        disorder_ms=feed.disorder_ms,
        idle_ms=feed.idle_ms,
        partitions=partitions,
    )


@dataclass(eq=False, slots=True)
class RunningStream:
    """A stream that is being read."""

    name: str
    query: StreamingQuery
    writer: StreamWriter
    limit_ms: Millis | None  # for how long, in all; None: until the query ends
    until_s: float | None = None  # when that is, by the monotonic clock, once slots run

    def begin(self, origin_s: float) -> None:
        """Fix when it has been read for long enough: what earlier drivers have read counts."""
        if self.limit_ms is not None:
            last = self.writer.chain.last
            read_ms = max(0, last.at_ms - origin_s * 1000) if last is not None else 0
            self.until_s = monotonic() + max(0.0, self.limit_ms - read_ms) / 1000

    def is_over(self) -> bool:
        """Whether it has come to its end, or was read for long enough. Raises StreamFailed.

        A micro-batch that has begun when its time is up is finished; none is begun after it.
        """
        writer = self.writer
        writer.closing |= self.until_s is not None and monotonic() >= self.until_s
        over = not writer.busy if writer.closing else not self.query.isActive
        ended = over and not writer.closing
        problem = why_ended(self.query, writer) if ended else writer.problem
        if problem is not None:
            raise StreamFailed(f"the query of the stream '{self.name}' failed: {problem}")
        return over

    def stop(self) -> None:
        """Stop the query; it can go on later."""
        stop_query(self.query)

    def seal(self) -> None:
        """Say that nothing more comes."""
        self.writer.chain.seal()


class StreamQueries:
    """The queries of a run, as a context: they are stopped when it is left."""

    def __init__(self, retain_ms: Millis | None = None) -> None:
        self.streams: list[RunningStream] = []
        self.problem: str | None = None  #: why a query has failed
        self.retain_ms = retain_ms  #: how long input is kept that nobody needs; None: for ever
        self._left = threading.Event()
        self._thread: threading.Thread | None = None
        self._upkeep: UpkeepThread | None = None

    @property
    def names(self) -> list[str]:
        """The streams that are being read."""
        return [stream.name for stream in self.streams]

    def start(
        self, flow: Dataflow, directory: RunDirectory, spark: SparkSession, limit_ms: Millis | None
    ) -> None:
        """Start a query for each stream that is not sealed. Raises UsageError if one cannot start.

        Each is read for `limit_ms` once slots run; None: until it ends or is stopped.
        """
        try:
            for name, feed in _unsealed(flow, directory).items():
                self.streams.append(_start(name, feed, directory, spark, limit_ms))
        except BaseException:
            self.stop()
            raise

    def attach(self, driver: Driver) -> None:
        """Watch the queries as long as a driver runs; one that fails ends the run."""
        if not self.streams:
            return
        told = driver.on_begin

        def begin(origin_s: float) -> None:
            told(origin_s)
            for stream in self.streams:
                stream.begin(origin_s)

        driver.on_begin = begin
        places = [stream.writer.chain.place for stream in self.streams]
        self._upkeep = UpkeepThread(places, driver, self.retain_ms)
        name = "snapline streams"
        self._thread = threading.Thread(target=self._watch, args=(driver,), name=name, daemon=True)
        self._thread.start()

    def _watch(self, driver: Driver) -> None:
        reading = list(self.streams)
        try:
            while reading and not self._left.wait(POLL_S):
                for stream in [each for each in reading if each.is_over()]:
                    stream.stop()
                    stream.seal()
                    reading.remove(stream)
        except Exception as error:  # whatever it is, nobody would go on reading the stream
            self.problem = str(error) if isinstance(error, SnaplineError) else _lost(error)
            problem = self.problem
            with suppress(OSError):  # the loop may be closed
                driver.loop.post(lambda: driver.abort(problem))

    def stop(self) -> None:
        """Stop all queries; what they have not finished they do again when the run goes on."""
        self._left.set()
        if self._thread is not None:
            self._thread.join()
        if self._upkeep is not None:
            self._upkeep.stop()
        for stream in self.streams:
            with suppress(Exception):  # a session that was stopped has stopped its queries
                stream.stop()

    def __enter__(self) -> "StreamQueries":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.stop()

    def check(self, directory: RunDirectory) -> None:
        """Raise StreamFailed if a query has failed, with how to go on."""
        if self.problem is not None:
            raise StreamFailed(
                f"{self.problem}. Once the cause is gone, go on with: "
                f"sl.resume({directory.name!r}, spark, flow=flow)"
            )


def start_streams(
    flow: Dataflow, directory: RunDirectory, spark: SparkSession, spec: Spec
) -> StreamQueries:
    """Start the queries of a run that reads, and keeps what it has read, for as long as its spec says."""
    queries = StreamQueries(spec.retain_ms)
    queries.start(flow, directory, spark, None if spec.endless else spec.duration_ms)
    for stream in queries.streams:
        if not spec.cut and streams_of(flow)[stream.name].available_now:
            stream.limit_ms = None
    return queries


def _start(
    name: str, feed: StreamFeed, directory: RunDirectory, spark: Any, limit_ms: Millis | None
) -> RunningStream:
    chain = StreamChain(staged_place(directory, name))
    StreamUpkeep(chain.place).drop_leftovers()
    # Rows come as they come: a stream is sorted within a micro-batch, and never put out of order.
    partitions = described_stream(chain.place).partitions
    staging = Staging(name, feed.columns, feed.schema, feed.time, 0, partitions)
    writer = StreamWriter(chain, staging)
    query = start_query(
        partial(feed.read, spark),
        writer,
        f"{name} of {directory.name}",
        available_now=feed.available_now,
    )
    return RunningStream(name, query, writer, limit_ms)


def _lost(error: Exception) -> str:
    first = str(error).strip().partition("\n")[0]
    return (
        f"the queries of the streams cannot be watched any more ({type(error).__name__}: {first})"
    )
