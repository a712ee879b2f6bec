"""Runs in the background: `query = sl.start(flow, spark)`, with the arguments of `sl.run`."""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from snapline import arguments
from snapline.api import PATIENCE, RUN_RULES, prepared_from, run
from snapline.arguments import checked, optional
from snapline.dataflow.graph import Dataflow
from snapline.errors import UsageError
from snapline.rundir.program import load_flow
from snapline.rundir.spec import FOREVER, RULES, refuse_idle
from snapline.runs import run as runtime
from snapline.runs.patience import timeouts
from snapline.runs.query import Query

_RULES = {
    **RUN_RULES,
    "flow": optional(RUN_RULES["flow"]),
    "duration": RULES["duration"],
    "resume": optional(arguments.text),
}
_RESUME = inspect.Parameter("resume", inspect.Parameter.KEYWORD_ONLY, default=None)
_SHARED = ("flow", "spark", "resume", *PATIENCE, "runs", "watcher", "listener")


def _as_run(function: Callable[..., Query]) -> Callable[..., Query]:
    """Give a function the arguments of `run`, its default duration, and `resume`."""
    known = [
        each.replace(default={"flow": None, "duration": FOREVER}.get(each.name, each.default))
        for each in inspect.signature(run).parameters.values()
    ]
    function.__signature__ = inspect.Signature([*known, _RESUME])  # type: ignore[attr-defined]
    return function


def _refuse_start(given: Mapping[str, Any], written: Callable[[str], str]) -> None:
    if given.get("resume") is None:
        if given.get("flow") is None:
            raise UsageError("say what to start: a flow, or resume= with the name of a run")
        refuse_idle(given, written)
        return
    for name in given:
        if name not in _SHARED:
            raise UsageError(f"{name} was decided when the run began: leave it out with resume")


@checked(_RULES, _refuse_start)
@_as_run
def start(
    flow: Dataflow | str | None = None, spark: SparkSession | None = None, **given: Any
) -> Query:
    """Start a run in the background, without an end unless `duration` says otherwise: a `Query`.

    `query = sl.start(flow, spark)`; `query.stop()` ends it with a last line, and
    `sl.start(flow, spark, resume=query.name)` goes on from there. All other arguments are those of `run`.
    A DataFrame, and other input that has an end, is read to it, and the query is over then. `rate="max"`
    needs a `duration`.

    Args:
        flow: as for `run`; with `resume` only where the run began in a program that held it.
        spark: your session; several queries may share it.
        given: `resume`, the name of a run that is to go on, or `"last"`; and the arguments of `run`.

    Raises:
        UsageError, NotStarted: as `run` does; all that goes wrong later is in `query.exception()`.
    """
    signature = inspect.signature(start)
    usual = {name: each.default for name, each in signature.parameters.items()}
    whole = {**usual, **given, "flow": flow, "spark": spark}
    if whole["resume"] is not None:
        prepared = runtime.prepare_resume(
            whole["resume"],
            spark,
            flow=load_flow(flow) if isinstance(flow, str) else flow,
            runs=Path(whole["runs"]),
        )
        patience = timeouts(*(whole[name] for name in PATIENCE))
    else:
        prepared, patience = prepared_from(whole)
    query = Query(prepared, patience, whole["watcher"], whole["listener"])
    query.begin()
    return query
