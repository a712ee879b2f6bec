"""The tables of a run of another system: what went in, and what a reader of its sink saw."""

from collections.abc import Sequence

import numpy as np

from snapline.batch import Batch, concat
from snapline.judge.tables import SystemTables
from snapline.systems.harness.base import System, VisibleRows
from snapline.workload import WORKLOADS
from snapline.workload.common.base import Params


def tables_of(flow: str, params: Params, system: System, origin_s: float) -> SystemTables:
    """The tables of a run that is over; `origin_s` is when input began to be due."""
    outputs = {sink: _stamped(parts, origin_s) for sink, parts in system.output().items()}
    late = system.late_output()
    lineage = WORKLOADS[flow].lineage
    inputs = None if lineage is None else without_watermarks(lineage(params).events())
    return SystemTables(inputs, outputs, None if late is None else _stamped(late, origin_s))


def without_watermarks(events: Batch) -> Batch:
    """The events without Snapline's own watermarks: other systems make theirs in other ways."""
    return events.select(*(name for name in events.columns if name != "watermark"))


def _stamped(parts: Sequence[VisibleRows], origin_s: float) -> Batch:
    """All rows, numbered, each with the time at which it was written."""
    if not parts:
        return Batch({}, 0)
    lengths = [len(part.rows) for part in parts]
    written = np.array([round((part.at_s - origin_s) * 1000) for part in parts], np.int64)
    rows = concat([part.rows for part in parts])
    position = np.arange(len(rows), dtype=np.int64)
    return rows.with_columns(position=position, written=np.repeat(written, lengths))
