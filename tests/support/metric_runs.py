"""Runs made by hand: seconds and events as a driver would have seen them."""

from typing import Any

import numpy as np

from snapline.journal.entry import COORDINATOR, Happened
from snapline.journal.happenings import Happening
from snapline.metrics.second import Second

SECOND = 1_000_000


def happened(at: float, what: Happening, actor: str = COORDINATOR, epoch: int = 1) -> Happened:
    return Happened(round(at * SECOND), actor, epoch, what)


def second(at_s: int, latency_ms: float | None = 20, **fields: Any) -> Second:
    """A calm second of two slots, which read all the time, unless told otherwise; None: without output."""
    calm = {"running": 2, "backlog": 0, "read": 1000, "written": 1000}
    reading = {"first_us": at_s * SECOND, "last_us": (at_s + 1) * SECOND}
    made = Second(at_s, **{**calm, **reading, **fields})
    if latency_ms is not None:
        made.latency.add_ages(np.zeros(100, np.int64), now_us=round(latency_ms * 1000))
    made.settle()
    return made


def seconds(*latencies_ms: float | None, **fields: Any) -> list[Second]:
    """Consecutive seconds with these latencies."""
    return [second(at_s, ms, **fields) for at_s, ms in enumerate(latencies_ms)]
