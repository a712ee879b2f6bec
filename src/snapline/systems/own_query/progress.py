"""What Spark said of the micro-batches of a query, as far as a verdict depends on it.

Two things make the output of a stream differ from that of a batch although nothing was lost: rows that came
behind the watermark are dropped, and rows of windows that the watermark has not passed are held back. Spark
counts the former. The latter are in the state of the query when it ends.
"""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from snapline.systems.structured_streaming.files import batch_reports, rows_dropped

HOLD_NOTHING = ("dedupe", "dedupeWithinWatermark", "globalLimit")
"""Operators with state that put everything out at once, by the names that Spark's reports have."""


@dataclass(frozen=True, slots=True)
class StreamReports:
    """What the reports of all lives of a query say."""

    dropped: int  # rows behind the watermark
    held: int  # rows of state, at the end, of operators that may hold output back
    watermark: datetime | None  # at the end; None: there is none
    first_s: float | None  # when the first micro-batch was committed, in seconds since the epoch
    unreported: (
        int  # micro-batches of a query with a watermark that were committed and not reported
    )


def stream_reports(progress: Path, committed: int) -> StreamReports:
    """Read the reports of a query that has committed the micro-batches 0 to `committed`."""
    reports = batch_reports(progress)
    last: dict[str, Any] = reports[max(reports)] if reports else {}
    operators = last.get("stateOperators", [])
    waiting = [o for o in operators if o.get("operatorName") not in HOLD_NOTHING]
    text = last.get("eventTime", {}).get("watermark")
    unreported = set(range(committed + 1)) - set(reports)
    return StreamReports(
        rows_dropped(progress),
        sum(operator.get("numRowsTotal", 0) for operator in waiting),
        datetime.fromisoformat(text) if text else None,
        _ended_s(reports[min(reports)]) if reports else None,
        len(unreported) if text or not reports else 0,
    )


def _ended_s(report: dict[str, Any]) -> float:
    """When a micro-batch was over."""
    lasted_ms = report["durationMs"].get("triggerExecution", 0)
    return datetime.fromisoformat(report["timestamp"]).timestamp() + float(lasted_ms) / 1000
