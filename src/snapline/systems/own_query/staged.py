"""The input of a check: a DataFrame as Parquet files, which appear one after the other.

All files are written beforehand, in the order of the rows. What becomes due is therefore only the number of
a file, and giving it is one rename. Spark's file source takes files in the order of their times, so these
are set when the files are written.
"""

import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from snapline.batch import Batch, Schema
from snapline.errors import UsageError
from snapline.ids import Millis

FILE = "file"


def stage(df: DataFrame, directory: Path, batches: int) -> list[Path]:
    """Write a DataFrame as about so many files, and return them in the order of its rows."""
    try:
        rows = df.count()
        if not rows:
            raise UsageError("df is empty: there is nothing to put a query to the test with")
        writer = df.coalesce(1).write.option("maxRecordsPerFile", -(-rows // batches))
        writer.parquet(f"file://{directory}")
    except PySparkException as error:
        said = str(error).strip().partition("\n")[0]
        raise UsageError(f"df cannot be written as Parquet files: {said}") from error
    files = sorted(directory.glob("part-*.parquet"))
    now_ms = time.time_ns() // 1_000_000
    for number, file in enumerate(files):
        changed_ns = (now_ms + number) * 1_000_000
        os.utime(file, ns=(changed_ns, changed_ns))
    return files


@dataclass(frozen=True, slots=True)
class FileNumbers:
    """An input whose records are the numbers of files, of which one becomes due at each interval."""

    files: int
    interval_ms: Millis
    partitions: int = 1

    @property
    def schema(self) -> Schema:
        """One column: the number."""
        return {FILE: "int64"}

    def end(self, partition: int) -> int:
        """How many files there are."""
        return self.files

    def due_ms(self, partition: int, offset: int) -> Millis:
        """When a file is to appear."""
        return offset * self.interval_ms

    def due_through(self, partition: int, now_ms: Millis) -> int:
        """How many files are to be there by now."""
        return min(self.files, now_ms // self.interval_ms + 1)

    def read(self, partition: int, offset: int, stop: int) -> Batch:
        """The numbers of some files."""
        return Batch({FILE: np.arange(offset, stop, dtype=np.int64)})

    def watermark(self, partition: int, offset: int) -> Millis:
        """Files have no event times that anybody here would know."""
        return 0
