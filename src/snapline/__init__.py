"""Snapline: streaming dataflows on Spark under the fault-tolerance protocol you choose.

`import snapline as sl` gives all that a program needs; `sl.run` shows how it goes together. A name is
imported when it is first used, so that a program that needs no Spark does not wait for its import.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from snapline.api import fork, open_run, resume, run, run_on, stored
    from snapline.background import start
    from snapline.batch import Batch, Varlen, Words
    from snapline.dataflow.graph import Dataflow
    from snapline.dataflow.operators.operator import Capture, Operator
    from snapline.errors import (
        FlowFailed,
        GraphError,
        NotStarted,
        SnaplineError,
        StreamFailed,
        UsageError,
    )
    from snapline.rundir.stored_input import parquet, stream
    from snapline.runs.shown.progress import Progress
    from snapline.systems.own_query.check import check_stream
    from snapline.workload.common.own import generated, records
    from snapline.workload.nexmark import streams as nexmark

__all__ = [
    "Batch",
    "Capture",
    "Dataflow",
    "FlowFailed",
    "GraphError",
    "NotStarted",
    "Operator",
    "Progress",
    "SnaplineError",
    "StreamFailed",
    "UsageError",
    "Varlen",
    "Words",
    "check_stream",
    "fork",
    "generated",
    "nexmark",
    "open_run",
    "parquet",
    "records",
    "resume",
    "run",
    "run_on",
    "start",
    "stored",
    "stream",
]

_HOMES = {
    "snapline.api": ("fork", "open_run", "resume", "run", "run_on", "stored"),
    "snapline.background": ("start",),
    "snapline.batch": ("Batch", "Varlen", "Words"),
    "snapline.dataflow.graph": ("Dataflow",),
    "snapline.dataflow.operators.operator": ("Capture", "Operator"),
    "snapline.errors": (
        "FlowFailed",
        "GraphError",
        "NotStarted",
        "SnaplineError",
        "StreamFailed",
        "UsageError",
    ),
    "snapline.rundir.stored_input": ("parquet", "stream"),
    "snapline.runs.shown.progress": ("Progress",),
    "snapline.systems.own_query.check": ("check_stream",),
    "snapline.workload.common.own": ("generated", "records"),
}
_HOME_BY_NAME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Look a name up in the module where it lives."""
    if name == "nexmark":
        return import_module("snapline.workload.nexmark.streams")
    if name in _HOME_BY_NAME:
        return getattr(import_module(_HOME_BY_NAME[name]), name)
    from difflib import get_close_matches  # only a mistake needs it

    near = get_close_matches(name, __all__, n=1)
    hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(__all__)}"
    raise AttributeError(f"snapline has no {name!r}: {hint}")


def __dir__() -> list[str]:
    """The names that are meant for programs."""
    return sorted(__all__)
