"""The query of a stream: each micro-batch becomes segments of the embedded log, then one manifest.

It is a Structured Streaming query of its own, with its checkpoint beside the chain that it writes. Spark
runs a micro-batch again if it does not know that it was finished. So the order is the contract: the rows
are durable BEFORE the manifest is written, and Spark notes that the micro-batch is done only AFTER that.
Whatever dies in between, the repetition finds the manifest and adds nothing, or finds none and writes it.

The rows go from Spark's tasks to files. The driver learns their sizes, and writes the manifest.
"""

import json
from collections.abc import Callable
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from snapline.errors import ObjectMissing, SnaplineError, UsageError
from snapline.spark.generate import job_reason
from snapline.spark.staging import Staging, check_columns, segments_told, write_rows
from snapline.storage.streams.chain import CHECKPOINT, StreamChain


class StreamWriter:
    """What Spark calls with every micro-batch."""

    def __init__(self, chain: StreamChain, staging: Staging) -> None:
        self.chain = chain
        self.staging = staging
        self.problem: str | None = None  #: why a micro-batch failed
        self.busy = False  #: whether a micro-batch is being written
        self.closing = False  #: whether no other one is to be begun

    def __call__(self, rows: DataFrame, batch: int) -> None:
        """Add a micro-batch to the chain, unless it is there."""
        self.busy = True  # BEFORE it is asked: who closes looks whether somebody is busy afterwards
        try:
            if not self.closing:
                self._add(rows, batch)
                return
        except Exception as error:
            self.problem = str(error) if isinstance(error, SnaplineError) else job_reason(error)
        finally:
            self.busy = False
        # A few words, not the error: Spark searches what Python raises with a pattern, whose stack
        # overflows if that has the trace of another error of Spark's.
        raise SnaplineError(self.problem or "the stream is not read any further")

    def _add(self, rows: DataFrame, batch: int) -> None:
        query = query_id(self.chain.place)
        folder = self.chain.begin(batch, query)
        if folder is None:
            return
        segments = segments_told(write_rows(rows, folder, self.staging), self.staging)
        self.chain.add(batch, query, folder, segments)


def query_id(place: Path) -> str:
    """The id that Spark has given to the query of a stream; it has it as long as its checkpoint."""
    path = place / CHECKPOINT / "metadata"
    try:
        return str(json.loads(path.read_text())["id"])
    except (OSError, ValueError, LookupError) as error:
        raise ObjectMissing(f"{path} does not say which query this is: {error}") from error


def start_query(
    read: Callable[[], DataFrame], writer: StreamWriter, name: str, *, available_now: bool
) -> StreamingQuery:
    """Start the query of a stream, where it has stopped if it has run before. Raises UsageError."""
    staging, place = writer.staging, writer.chain.place
    try:
        frame = read()
        check_columns(frame, staging)
        asked = frame.writeStream.foreachBatch(writer).queryName(name)
        asked = asked.option("checkpointLocation", f"file://{place / CHECKPOINT}")
        return (asked.trigger(availableNow=True) if available_now else asked).start()
    except PySparkException as error:
        raise UsageError(
            f"the source '{staging.source}' cannot be read as a stream: {job_reason(error)}"
        ) from error


def stop_query(query: StreamingQuery) -> None:
    """Stop a query, now; what it has not finished it does again when it goes on."""
    try:
        query.stop()
    except PySparkException as error:
        raise SnaplineError(f"the query {query.name} does not stop: {job_reason(error)}") from error


def why_ended(query: StreamingQuery, writer: StreamWriter) -> str | None:
    """Why a query that is not active any more has failed; None if it came to its end."""
    error = query.exception()
    return writer.problem or (None if error is None else job_reason(error))
