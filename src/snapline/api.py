"""The Python interface: run a dataflow on Spark, break it, judge it, and read what it put out.

import snapline as sl

flow = sl.Dataflow("bids per bidder")
bids = flow.source(sl.nexmark.bids(rate=50_000, seed=1))
bids.key_by("bidder").tumbling("10s").count().sink("counts")
run = sl.run(flow, spark, protocol="uncoordinated", slots=2, duration="30s", faults=["kill slot=1 at=12s"])
run.verdict, run.metrics, run.output().show()
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pyspark.sql import SparkSession

from snapline import arguments
from snapline.arguments import Rule, checked, instance, optional, span
from snapline.dataflow.graph import Dataflow
from snapline.errors import UsageError
from snapline.ids import Millis
from snapline.protocols import DEFAULT
from snapline.rundir.directory import RUNS
from snapline.rundir.program import load_flow
from snapline.rundir.spec import LOOPBACK, RULES, refuse_idle, spec_from
from snapline.rundir.stored_input import stored_input, streams_of
from snapline.runs import finished
from snapline.runs import run as runtime
from snapline.runs.finished import Run
from snapline.runs.listener import METHODS, Listening
from snapline.runs.patience import FAILURES_MAX, timeouts
from snapline.runs.run import PreparedRun
from snapline.runs.shown.progress import Progress, in_notebook
from snapline.runtime.driver.restart import RestartPolicy
from snapline.runtime.driver.roster import Timeouts
from snapline.runtime.driver.timeline import Watcher
from snapline.spark.cores import check_own_cores
from snapline.spark.ready import check_session
from snapline.spark.slot_jobs import available_slots
from snapline.storage.api import Ingress
from snapline.systems import run as systems
from snapline.systems.harness.base import System
from snapline.systems.registry import system_of
from snapline.systems.run import SystemRun
from snapline.workload.common.base import Size

LINE_MAX = (1 << 63) - 1

Duration = str | Millis
"""`"5s"`, `"200ms"`, `"2m"`, or a number of milliseconds."""


def _a_watcher(value: Any, name: str) -> Watcher:
    if not all(callable(getattr(value, method, None)) for method in ("event", "second")):
        raise arguments.refused(name, "something with the methods event and second", value)
    watcher: Watcher = value
    return watcher


def _a_system(value: Any, name: str) -> System | str:
    if isinstance(value, str):
        return arguments.text(value, name)
    if not all(callable(getattr(value, method, None)) for method in ("start", "input", "stop")):
        raise arguments.refused(name, "the name of a system, or an adapter of your own", value)
    system: System = value
    return system


def _a_listener(value: Any, name: str) -> Any:
    if not any(callable(getattr(value, method, None)) for method in METHODS):
        raise arguments.refused(
            name, f"something with any of the methods {', '.join(METHODS)}", value
        )
    return value


PATIENCE = ("heartbeat", "silence", "restart_failures", "restart_window")
_OWN_RULES: Mapping[str, Rule] = {
    "flow": instance((Dataflow, str), "a Dataflow, the name of a workload, or 'my_flow.py:flow'"),
    "spark": optional(check_session),
    "settings": optional(RULES["settings"]),
    "options": optional(arguments.named),
    "heartbeat": span(1),
    "silence": span(1),
    "restart_failures": arguments.whole(1, FAILURES_MAX),
    "restart_window": span(1),
    "runs": arguments.path,
    "watcher": optional(_a_watcher),
    "listener": optional(_a_listener),
}
RUN_RULES = {**RULES, **_OWN_RULES, "duration": optional(RULES["duration"])}
_RESUME_RULES = {**_OWN_RULES, "name": arguments.text, "flow": optional(_OWN_RULES["flow"])}
_FORK_RULES = {**_RESUME_RULES, "line": arguments.whole(1, LINE_MAX)}
_RUN_ON_RULES = {
    **RULES,
    **_OWN_RULES,
    "duration": span(1),
    "system": _a_system,
    "flow": arguments.text,
}


@checked(RUN_RULES, refuse_idle)
def run(
    flow: Dataflow | str,
    spark: SparkSession | None = None,
    *,
    protocol: str = DEFAULT,
    guarantee: str | None = None,
    slots: int | None = None,
    interval: Duration = "5s",
    duration: Duration | None = None,
    rate: int | Literal["max"] = 2_000,
    records: int = 1_000_000,
    faults: str | Sequence[str] = (),
    chaos: str | None = None,
    spares: int = 0,
    seed: int = 1,
    size: Size = "full",
    hot: int = 0,
    hot_moves: Duration = 0,
    settings: Mapping[str, str | int] | None = None,
    options: Mapping[str, str | int | bool] | None = None,
    pools: Mapping[str, int] | None = None,
    save: Mapping[str, str | Millis | bool] | None = None,
    inputs: Mapping[str, str] | None = None,
    input: str | Path | None = None,
    reference: bool = False,
    publish_lag: int = 0,
    retain: Duration | None = None,
    warm_up: Duration = 0,
    allow_vacuous: bool = False,
    journal: Literal["brief", "full"] = "brief",
    shared: bool = False,
    listen: str = LOOPBACK,
    heartbeat: Duration = "200ms",
    silence: Duration = "2s",
    oversubscribe: bool = False,
    restart_failures: int = RestartPolicy().failures,
    restart_window: Duration = "60s",
    runs: str | Path = RUNS,
    watcher: Watcher | None = None,
    listener: Any = None,
) -> Run:
    """Run a dataflow on Spark to its end, break it as asked, and judge the output.

    Args:
        flow: a dataflow, the name of a workload (`"q12"`), or a file and a name (`"my_flow.py:flow"`).
        spark: your session; it is used, and never stopped. Without one, a local one is started and ended.
        protocol: how it survives failures: see `snapline list protocols`.
        guarantee: what to promise, if not the most that the protocol can.
        slots: how many processes; each is one long-running Spark task. Default: one per core of Spark,
            and one less for a flow with streams, whose queries need a core.
        interval: the time between two checkpoints; not for the protocol `none`, which takes none.
        duration: how long input comes, `"20s"` unless given. A DataFrame is read to its end, or as far as
            this says if it is given; a stream with `available_now` as well. `"forever"`: input that is
            computed, and a stream, has no end; Ctrl-C stops the run with a last line, and `resume` goes on.
        rate: records per second, for workloads; inputs of your own say it themselves. `"max"`: all records
            are due at once, and the flow takes them as fast as it can.
        records: how many there are at rate `"max"`.
        faults: what goes wrong, and when: `["kill slot=1 at=12s"]`, or a file of it: `"@plan.txt"`; see
            `snapline list faults`. `kill driver` kills this very process: `sl.resume("last")` goes on.
        chaos: faults at random, all the time: `"seed=7"`, `"seed=7 intensity=low"` or `high`.
        spares: processes that wait, ready, to replace a lost slot at once.
        seed: the seed of generated input and of all else that is drawn at random; `chaos` has its own.
        size: how large a workload's input is: `"full"` as in the papers, or `"small"`.
        hot: so many percent of a workload's records name one hot key.
        hot_moves: after how long another key becomes the hot one; 0: never.
        settings: what only this workload knows: `{"resources": 100}`; see `snapline list workloads`.
        options: those of the engine and the protocol: `{"batch": 500, "align_timeout": "50ms",
            "fused": False}`; see `snapline list options`. One that the protocol does not heed is refused.
        pools: how many slots each pool of the dataflow has, besides `slots`: `{"model": 2}`; else 1.
        save: how often operators are saved, whatever the flow says: `{"model": "1s", "clicks": "no"}`.
        inputs: what becomes of their input while they are away: `{"model": "keep", "clicks": "wait:1000"}`.
        input: a directory with stored input, written by `snapline generate`; for workloads only.
        reference: judge the output by runs without failures; without it, or an oracle, it is "unknown".
        publish_lag: 1 publishes the output of a line only with the next line, so that the run survives
            damage to its newest line. More than 1 needs the option `kept_lines`, one larger.
        retain: for how long published output is kept, `"10m"`; for ever unless given. At least 4 intervals.
        warm_up: figures of time and size leave out what is measured before: `"5s"`. Totals do not.
        allow_vacuous: let the verdict be *yes* also where a fault never struck, or nothing came out.
        journal: `"full"` also writes down every message (without its records), so that what the protocol
            answered can be computed again and compared.
        shared: the umask decides who may use the run directory: where Spark's executors are another user.
        listen: the address of this machine at which Spark's executors reach it.
        heartbeat: how often slots say that they live.
        silence: after how long without a heartbeat a slot is given up.
        oversubscribe: allow more than 16 slots for each core of this machine, slow as they are.
        restart_failures: after this many failures of processes in a row a run is given up.
        restart_window: failures are in a row unless a line was committed or all slots ran so long, between.
        runs: where the run's directory is made.
        watcher: an object that is told of every event, and once a second the figures, during the run.
        listener: an object with any of `on_progress`, `on_loss`, `on_leaving`, `on_recovered`, `on_end`.

    Raises:
        UsageError: an argument, the dataflow or a fault is wrong; nothing has run.
        NotStarted: the arguments are fine, but the flow cannot run here: there is no Java, Spark does
            not start, or its workers have no Snapline; nothing has run.
        FlowFailed: code of the dataflow raised, and did so again after a restart. The run can be resumed.
        StreamFailed: the query of a stream failed. The run can be resumed.
    """
    given = dict(locals())
    prepared, patience = prepared_from(given)
    return runtime.carry_out(prepared, patience, _listening(watcher, listener))


def prepared_from(given: dict[str, Any]) -> tuple[PreparedRun, Timeouts]:
    """A run from the arguments of `run`, checked, and how patient its driver is."""
    flow, spark = given["flow"], given["spark"]
    if given["slots"] is None and spark is not None:
        # The queries of streams need a core.
        streams = isinstance(flow, Dataflow) and bool(streams_of(flow))
        given["slots"] = max(1, available_slots(spark) - streams)
    patience = timeouts(*(given[name] for name in PATIENCE))
    said = {name: given[name] for name in RULES if given.get(name) is not None}
    spec = spec_from({**said, "flow": flow if isinstance(flow, str) else flow.name}, str)
    own = flow if isinstance(flow, Dataflow) else None
    return runtime.prepare(spec, spark, flow=own, runs=Path(given["runs"])), patience


def _listening(watcher: Watcher | None, listener: Any) -> Listening:
    return Listening(listener, watcher or (Progress() if in_notebook() else None))


@checked(_RESUME_RULES)
def resume(
    name: str = "last",
    spark: SparkSession | None = None,
    *,
    flow: Dataflow | str | None = None,
    heartbeat: Duration = "200ms",
    silence: Duration = "2s",
    restart_failures: int = RestartPolicy().failures,
    restart_window: Duration = "60s",
    runs: str | Path = RUNS,
    watcher: Watcher | None = None,
    listener: Any = None,
) -> Run:
    """Go on with a run that did not come to its end: `sl.resume("last", spark)`.

    It goes on from its last committed line, and is what it was when it began: the same flow, protocol,
    options and input. None of its faults strikes any more. All arguments are as for `run`.

    Args:
        name: the name of the run, or `"last"`.
        spark: your session; it need not be the one with which the run began.
        flow: the dataflow, if the run began in a program that held it. A workload, and a file that the
            run names, are found without it.
        heartbeat: how often slots say that they live.
        silence: after how long without a heartbeat a slot is given up.
        restart_failures: after this many failures of processes in a row a run is given up.
        restart_window: which failures count as being in a row; see `run`.
        runs: where the run's directory is.
        watcher: an object that is told of every event, and once a second the figures, during the run.
        listener: an object with any of `on_progress`, `on_loss`, `on_leaving`, `on_recovered`, `on_end`.

    Raises:
        UsageError: there is no such run, it is over, somebody else runs it, or the flow is another one.
        RunDamaged: what it left is gone or damaged; the message names the file.
        NotStarted, FlowFailed: as `run` does.
    """
    return runtime.resume(
        name,
        spark,
        flow=load_flow(flow) if isinstance(flow, str) else flow,
        runs=Path(runs),
        timeouts=timeouts(heartbeat, silence, restart_failures, restart_window),
        watcher=_listening(watcher, listener),
    )


@checked(_FORK_RULES)
def fork(
    name: str,
    line: int,
    spark: SparkSession | None = None,
    *,
    flow: Dataflow | str | None = None,
    heartbeat: Duration = "200ms",
    silence: Duration = "2s",
    restart_failures: int = RestartPolicy().failures,
    restart_window: Duration = "60s",
    runs: str | Path = RUNS,
    watcher: Watcher | None = None,
    listener: Any = None,
) -> Run:
    """Make a new run that begins at a line of another, and run it to its end: `sl.fork("last", 12, spark)`.

    The other run must not be going on, and is not changed. What was published until the line is copied, so
    the output of the new run is complete. It has the flow, slots, protocol, options and input of the other,
    and no faults. `snapline checkpoints RUN` shows which lines a run keeps; the option `kept_lines` says
    how many. All arguments but `line` are as for `resume`.

    Args:
        name: the name of the other run, or `"last"`.
        line: the number of the line.
        spark: your session; it need not be the one with which the other run began.
        flow: the dataflow, if the other run began in a program that held it.
        heartbeat: how often slots say that they live.
        silence: after how long without a heartbeat a slot is given up.
        restart_failures: after this many failures of processes in a row a run is given up.
        restart_window: which failures count as being in a row; see `run`.
        runs: where the directories of both runs are.
        watcher: an object that is told of every event, and once a second the figures, during the run.
        listener: an object with any of `on_progress`, `on_loss`, `on_leaving`, `on_recovered`, `on_end`.

    Raises:
        UsageError: there is no such run, it goes on, it does not keep the line, or the flow is another one.
        RunDamaged: a file that the line needs is gone or damaged; the message names it.
        NotStarted, FlowFailed: as `run` does.
    """
    return runtime.fork(
        name,
        line,
        spark,
        flow=load_flow(flow) if isinstance(flow, str) else flow,
        runs=Path(runs),
        timeouts=timeouts(heartbeat, silence, restart_failures, restart_window),
        watcher=_listening(watcher, listener),
    )


@checked(_RUN_ON_RULES, refuse_idle)
def run_on(
    system: System | str,
    flow: str,
    *,
    guarantee: str | None = None,
    slots: int | None = None,
    duration: Duration = "20s",
    rate: int | Literal["max"] = 2_000,
    records: int = 1_000_000,
    faults: str | Sequence[str] = (),
    seed: int = 1,
    size: Size = "full",
    hot: int = 0,
    hot_moves: Duration = 0,
    settings: Mapping[str, str | int] | None = None,
    oversubscribe: bool = False,
    runs: str | Path = RUNS,
) -> SystemRun:
    """Put another system to the test: `sl.run_on("structured-streaming", "sst", faults=...)`.

    `system` may be an adapter of your own (`docs/systems.md`). `guarantee` is what it is held to, exactly
    once unless given; `slots` how many cores it has; all else is as for `run`.
    """
    adapter = system_of(system) if isinstance(system, str) else system
    given = {
        "flow": flow,
        "guarantee": guarantee,
        "slots": slots,
        "rate": rate,
        "duration": duration,
        "faults": faults,
        "seed": seed,
        "records": records,
        "size": size,
        "hot": hot,
        "hot_moves": hot_moves,
        "settings": settings or {},
        "oversubscribe": oversubscribe,
        "system": system if isinstance(system, str) else adapter.name,
    }
    spec = spec_from(given, str)
    check_own_cores(spec)
    return systems.run(spec, adapter, runs=Path(runs))


@checked(
    {
        "name": arguments.text,
        "spark": optional(check_session),
        "runs": arguments.path,
        "flow": optional(_OWN_RULES["flow"]),
    }
)
def open_run(
    name: str = "last",
    spark: SparkSession | None = None,
    runs: str | Path = RUNS,
    *,
    flow: Dataflow | str | None = None,
) -> Run:
    """A run that is over, by its name: `sl.open_run("last", spark).output().show()`.

    `state()` of a run that was not one of a workload needs its dataflow: `flow=my_flow`, or
    `flow="my_flow.py:flow"`. A file that only the run directory names is not executed.
    """
    named = load_flow(flow) if isinstance(flow, str) else flow
    return finished.open_run(Path(runs), name, spark, named)


@checked({"directory": arguments.path, "source": arguments.text})
def stored(directory: str | Path, source: str) -> Ingress:
    """Open one source of an input that `snapline generate` has stored: `sl.stored("input", "bids")`."""
    sources = stored_input(Path(directory)).sources
    if source not in sources:
        raise UsageError(f"{directory} has no source {source!r}: it has {', '.join(sources)}")
    return sources[source]
