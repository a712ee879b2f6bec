"""Reads what Structured Streaming leaves on disk: the rows of its sink, and how far its checkpoint is.

The Parquet sink keeps a log of the files that count in `_spark_metadata`: one entry for each micro-batch,
and every tenth (`9.compact`, `19.compact`) repeats all before it. Files that no entry names were written
by an attempt that never ended. A reader that knows the log leaves them out; Spark's own does, and so does
`logged_files`. A sink without such a log is read like any directory: all files that are there.

A checkpoint has two logs of micro-batches: `offsets/N` is written before batch N, `commits/N` after it.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyarrow import parquet

from snapline.errors import SnaplineError
from snapline.storage.parquet.arrow import from_arrow
from snapline.systems.harness.base import VisibleRows

LOG = "_spark_metadata"
COMPACT = ".compact"
PARTS = "[!._]*.parquet"


@dataclass(frozen=True, slots=True)
class MicroBatches:
    """The micro-batches of a checkpoint."""

    checkpoint: Path

    @property
    def planned(self) -> int:
        """The last batch that was begun; -1 if none was."""
        return _last(self.checkpoint / "offsets")

    @property
    def committed(self) -> int:
        """The last batch that was ended; -1 if none was."""
        return _last(self.checkpoint / "commits")

    def younger(self, number: int, sink: Path) -> list[Path]:
        """The files of a sink that were written after this batch was begun."""
        try:
            begun_ns = (self.checkpoint / "offsets" / str(number)).stat().st_mtime_ns
            return [file for file in sink.glob(PARTS) if file.stat().st_mtime_ns > begun_ns]
        except FileNotFoundError:  # the file is gone by now; the next look will see the rest
            return []


def _last(directory: Path) -> int:
    try:
        return max(
            (int(path.name) for path in directory.iterdir() if path.name.isdigit()), default=-1
        )
    except FileNotFoundError:
        return -1


def logged_files(sink: Path) -> list[Path]:
    """The files of a Parquet sink that count, batch by batch."""
    entries = {
        int(path.name.removesuffix(COMPACT)): path
        for path in sorted(sink.glob(f"{LOG}/*"))  # N comes before N.compact, which replaces it
        if path.name.removesuffix(COMPACT).isdigit()
    }
    whole = max((n for n, path in entries.items() if path.suffix == COMPACT), default=-1)
    names = [name for n in sorted(entries) if n >= whole for name in _entry(entries[n])]
    return list(dict.fromkeys(names))


def _entry(path: Path) -> Iterator[Path]:
    version, *lines = path.read_text().splitlines()
    if version != "v1":
        raise SnaplineError(f"{path} is of a version of Spark's log that is not known: {version!r}")
    for line in lines:
        status = json.loads(line)
        if status["action"] == "add":
            yield Path(unquote(urlsplit(status["path"]).path))


def present_files(sink: Path) -> list[Path]:
    """All files of a directory of Parquet, in the order in which they were written."""
    return sorted(sink.glob(PARTS), key=lambda path: (path.stat().st_mtime_ns, path.name))


def read_files(files: list[Path]) -> list[VisibleRows]:
    """The rows of these files."""
    return [
        VisibleRows(from_arrow(parquet.read_table(file)), file.stat().st_mtime)
        for file in files
        if parquet.read_metadata(file).num_rows
    ]


def rows_in(file: Path) -> int:
    """How many rows a file has; 0 if it is not complete yet."""
    try:
        return int(parquet.read_metadata(file).num_rows)
    except (OSError, pa.ArrowException):
        return 0


def batch_reports(progress: Path) -> dict[int, dict[str, Any]]:
    """What Spark said of each micro-batch, by number; the last report of a killed driver may be missing."""
    try:
        lines = progress.read_text().splitlines(keepends=True)
    except FileNotFoundError:
        return {}
    whole = (json.loads(line) for line in lines if line.endswith("\n"))
    return {report["batchId"]: report for report in whole}  # a batch that was run again counts once


class RowsSoFar:
    """Counts the rows of micro-batches while reports of them are added to a file.

    Each look reads only what was added since the last one, so that its cost does not grow with the run. A
    batch that was run again counts once, as in `batch_reports`.
    """

    def __init__(self, progress: Path) -> None:
        self._progress = progress
        self._at = 0  #: how far the file was read: whole lines only
        self._rows: dict[int, tuple[int, int]] = {}  #: by number: rows of input, and rows dropped
        self.read = 0  #: rows of input of all batches that have ended
        self.dropped = 0  #: rows that came behind the watermark

    def look(self) -> None:
        """Take note of what was added."""
        try:
            with self._progress.open("rb") as file:
                file.seek(self._at)
                added = file.read()
        except FileNotFoundError:
            return
        whole, newline, _ = added.rpartition(b"\n")
        self._at += len(whole) + len(newline)
        for line in whole.splitlines():
            self._add(json.loads(line))

    def _add(self, report: dict[str, Any]) -> None:
        number = report["batchId"]
        read, dropped = self._rows.get(number, (0, 0))
        now = (_rows_read(report), _rows_dropped(report))
        self._rows[number] = now
        self.read += now[0] - read
        self.dropped += now[1] - dropped


def _rows_read(report: dict[str, Any]) -> int:
    return sum(source.get("numInputRows", 0) for source in report.get("sources", ()))


def _rows_dropped(report: dict[str, Any]) -> int:
    every = report["stateOperators"]
    return sum(operator.get("numRowsDroppedByWatermark", 0) for operator in every)


def rows_dropped(progress: Path) -> int:
    """How many rows Spark reports as dropped behind its watermark."""
    return sum(map(_rows_dropped, batch_reports(progress).values()))
