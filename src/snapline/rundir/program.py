"""Finds what to run from the name of a flow: a built-in workload, a file with a dataflow, or a dataflow.

A program is a dataflow bound to a size, and whoever can judge its output: the workload's oracle, or nobody.
`build_job` lays it out over slots, under the protocol and with the options of the spec.
"""

import difflib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, TypeAlias

from pyspark import cloudpickle

from snapline.arguments import nearest
from snapline.batch import Batch
from snapline.core.guarantee import Guarantee
from snapline.core.protocol import Options
from snapline.dataflow.deploy import deploy
from snapline.dataflow.feeds.feed import Feed
from snapline.dataflow.graph import Dataflow
from snapline.dataflow.pools import NO_POOLS, pool_sizes, pool_slots
from snapline.dataflow.protection import barrier_refusal
from snapline.engine.job import Job, Settings
from snapline.engine.options import (
    engine_settings,
    idle_option,
    is_fused,
    protocol_options,
    unfit_option,
)
from snapline.errors import UsageError
from snapline.ids import TaskId, task_id
from snapline.protocols import PROTOCOLS, refusal
from snapline.rundir.directory import RunDirectory
from snapline.rundir.inputs import with_inputs
from snapline.rundir.spec import Spec
from snapline.rundir.stored_input import stored_input, with_staged
from snapline.storage.api import Ingress
from snapline.storage.prefix_ingress import PrefixIngress
from snapline.workload import WORKLOADS
from snapline.workload.common.answers import AnswerColumns
from snapline.workload.common.base import Lineage, Params, Problem, Workload
from snapline.workload.common.losses import Excuses

Judge: TypeAlias = Callable[[Mapping[str, Batch], Guarantee], Sequence[Problem]]
"""(public output of each sink, level) -> what is wrong with it."""

Offsets: TypeAlias = Mapping[str, tuple[int, ...]]
"""How far each source was read, by name: the first offset of each partition that was not."""

_WHOLE: Offsets = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Program:
    """A dataflow to run, with what can judge its output."""

    flow: Dataflow
    judge: Judge | None  # None: there is no oracle
    lineage: Lineage | None = None  # for outputs that name the events behind them
    given: Dataflow | None = None  # the dataflow before it was bound to a size; None: a workload's
    #: the same judges for the input up to some offsets; None: there are none
    judges_up_to: "Callable[[Offsets], Judges] | None" = None
    #: the same judges, who excuse what losses touched; None: they do not know which rows these are
    judges_with: "Callable[[Excuses], Judges] | None" = None
    #: why nobody can say that a level was kept, though its judge found nothing wrong; None: one always can
    doubts: "Callable[[Guarantee], str | None] | None" = None
    #: the numbers in its output that are its answer, and what they should be; None: nobody has said so
    answer: "KnownAnswer | None" = None

    def up_to(self, offsets: Offsets) -> "Program":
        """The same program on the beginning of its input, with whoever can judge what comes out of that."""
        flow = self.flow.with_sources(lambda name, old: _beginning(old, offsets[name]))
        if self.judges_up_to is None:
            return replace(self, flow=flow, judge=None, lineage=None)
        judge, lineage = self.judges_up_to(offsets)
        return replace(self, flow=flow, judge=judge, lineage=lineage)

    def sinks(
        self, slots: int, pools: Mapping[str, int] = NO_POOLS
    ) -> dict[str, tuple[TaskId, ...]]:
        """The sinks with their tasks, as every deployment over so many slots has them."""
        self.flow.validate()
        graph = self.flow.graph
        hosts = pool_slots(slots, pool_sizes(graph, pools))
        sinks = [graph.nodes[name] for name in graph.order() if graph.nodes[name].is_sink]
        return {each.name: tuple(task_id(each.name, s) for s in hosts[each.pool]) for each in sinks}


@dataclass(frozen=True, slots=True)
class KnownAnswer:
    """The answer of a program, and what it should be."""

    answer: AnswerColumns
    right: Callable[[], Batch] | None  # None: what a run without failures puts out


Judges: TypeAlias = tuple[Judge, Lineage | None]
"""An oracle; and of outputs that name the events behind them, what is known of these."""


def _beginning(source: Ingress | Feed, stops: tuple[int, ...]) -> Ingress:
    assert not isinstance(source, Feed), "the sources of a program are bound"
    return PrefixIngress(source, stops)


def program_of(
    workload: Workload, params: Params, sources: Mapping[str, Ingress] | None = None
) -> Program:
    """The program of a workload; `sources` has its input if that is stored."""
    flow = workload.build(params)
    return Program(
        flow if sources is None else flow.with_sources(lambda name, old: sources[name]),
        *_judges_of(workload, params),
        judges_up_to=partial(_judges_of, workload, params) if workload.judges_prefix else None,
        judges_with=partial(_judges_with, workload, params) if workload.judges_losses else None,
        doubts=None if workload.doubts is None else partial(workload.doubts, params),
        answer=_answer_of(workload, params),
    )


def _answer_of(workload: Workload, params: Params) -> KnownAnswer | None:
    answer, right = workload.answer, workload.right_answer
    if answer is None:
        return None
    return KnownAnswer(answer, None if right is None else partial(right, params))


def _judges_with(workload: Workload, params: Params, excuses: Excuses) -> Judges:
    return _judges_of(workload, replace(params, excuses=excuses))


def _judges_of(workload: Workload, params: Params, offsets: Offsets = _WHOLE) -> Judges:
    params = replace(params, cut=tuple(offsets.items()))
    lineage = workload.lineage(params) if workload.lineage is not None else None
    return (lambda outputs, level: workload.judge(params, outputs, {}, level)), lineage


def find_program(
    spec: Spec, flow: Dataflow | None = None, directory: RunDirectory | None = None
) -> Program:
    """The program of a spec that the user wrote: a file that it names is executed. Raises UsageError.

    `flow` is the dataflow if the caller holds it, and `directory` that of a run which may have staged its
    DataFrames. The spec of a run directory is for `program_of_run`. Operators are protected and placed as
    the spec says, where it says something of them.
    """
    found = _found_program(spec, flow, directory)
    protected = found.flow.with_policies(dict(spec.save), dict(spec.inputs))
    return replace(found, flow=protected.with_pools(dict(spec.pools)))


def _found_program(spec: Spec, flow: Dataflow | None, directory: RunDirectory | None) -> Program:
    if flow is None and spec.flow in WORKLOADS:
        workload = WORKLOADS[spec.flow]
        params, sources = (spec.params, None) if spec.input is None else _stored(spec)
        return program_of(workload, params, sources)
    if spec.settings:
        raise UsageError(f"--set is for workloads; {spec.flow} brings its own sources")
    if spec.input is not None or spec.hot or spec.hot_ms:
        option = "--hot" if spec.input is None else "--input"
        raise UsageError(f"{option} is for workloads; {spec.flow} brings its own sources")
    if flow is None:
        flow = load_flow(spec.flow)
    cut_ms = spec.duration_ms if spec.cut else None
    read = flow if directory is None else with_staged(flow, directory, cut_ms)
    if spec.endless:
        return Program(read.bind_endless(spec.slots), None, given=flow)
    return Program(read.bind(spec.slots, spec.duration_ms), None, given=flow)


def program_of_run(
    spec: Spec, flow: Dataflow | None, directory: RunDirectory | None = None
) -> Program:
    """The program of a spec that was read from a run directory. Raises UsageError.

    Whoever hands over a run directory must not thereby decide which code is executed. So a file that only
    the directory names is not loaded: the user says which flow it was, and `flow` is what they named.
    """
    if flow is None and spec.flow not in WORKLOADS:
        if ".py:" in spec.flow:
            raise UsageError(
                f"this needs the dataflow of the run, {spec.flow}, and a file that only a run directory "
                "names is not executed: if you trust it, say --flow FILE:NAME, or flow= in Python"
            )
        raise UsageError(
            f"this needs the dataflow {spec.flow!r}, which a program held: pass it with flow= in Python, "
            "or say --flow FILE:NAME"
        )
    return find_program(spec, flow, directory)


def with_pool_sizes(spec: Spec, flow: Dataflow) -> Spec:
    """The same spec, with the sizes of all pools of the dataflow. Raises GraphError if one is for none."""
    return replace(spec, pools=tuple(pool_sizes(flow.graph, dict(spec.pools)).items()))


def build_job(spec: Spec, program: Program) -> Job:
    """The job of a spec, which the engine runs. Raises UsageError if there cannot be one."""
    protocol = PROTOCOLS.get(spec.protocol)
    if protocol is None:
        hint = nearest(spec.protocol, PROTOCOLS)
        raise UsageError(
            f"there is no protocol {spec.protocol!r}: see 'snapline list protocols'; {hint}"
        )
    guarantee = guarantee_of(spec)
    if idle := idle_option(spec.options, protocol):
        raise UsageError(idle)
    fused = is_fused(spec.options, default=True)
    deployment = with_inputs(deploy(program.flow, spec.slots, lean=fused, pools=dict(spec.pools)))
    reason = (
        refusal(protocol, deployment.topology, deployment.protected)
        or barrier_refusal(deployment.barriers, protocol, guarantee)
        or unfit_option(spec.options, deployment)
    )
    if reason:
        raise UsageError(reason)
    options = protocol_options(spec.options, Options(interval_ms=spec.interval_ms))
    if not spec.publish_lag < options.kept_lines:
        raise UsageError(
            f"with publish_lag {spec.publish_lag} output waits for as many lines after its own, so at "
            f"least {spec.publish_lag + 1} lines have to be kept: set the option kept_lines"
        )
    settings = engine_settings(spec.options, Settings(publish_lag=spec.publish_lag))
    return Job(program.flow.name, deployment, protocol, options, guarantee, settings, spec.seed)


def guarantee_of(spec: Spec) -> Guarantee:
    """The guarantee that a run promises. Raises UsageError if its protocol cannot promise it."""
    levels = {level.value: level for level in PROTOCOLS[spec.protocol].guarantees}
    if spec.guarantee is not None and spec.guarantee not in levels:
        able = ", ".join(levels)
        raise UsageError(f"{spec.protocol} cannot promise {spec.guarantee}: it can promise {able}")
    return levels[spec.guarantee] if spec.guarantee else next(iter(levels.values()))


def _stored(spec: Spec) -> tuple[Params, Mapping[str, Ingress]]:
    """The stored input that a spec names: its size, and its sources. Raises UsageError."""
    assert spec.input is not None
    if spec.hot or spec.hot_ms or spec.settings:
        option = "--set" if spec.settings else "--hot"
        raise UsageError(f"{option} is for input that is made now; 'snapline generate' has it, too")
    stored = stored_input(Path(spec.input))
    if stored.workload != spec.flow:
        raise UsageError(f"{spec.input} holds input for {stored.workload}, not for {spec.flow}")
    return stored.params, stored.sources


def load_flow(text: str) -> Dataflow:
    """The dataflow behind `my_flow.py:flow`: one, or a function without parameters that makes one."""
    file, _, name = text.rpartition(":")
    if text.endswith(".py"):
        file, name = text, ""
    if not file.endswith(".py"):
        near = difflib.get_close_matches(text.lower(), WORKLOADS, n=2, cutoff=0.5)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise UsageError(
            f"there is no workload {text!r}: see 'snapline list workloads', or name a dataflow of "
            f"your own as my_flow.py:flow{hint}"
        )
    path = Path(file)
    if not path.is_file():
        raise UsageError(f"there is no file {file}")
    module = _load_module(path)
    found = getattr(module, name, None)
    if found is None:
        flows = [key for key, value in vars(module).items() if isinstance(value, Dataflow)]
        hint = f"it has {', '.join(flows)}" if flows else "it makes no Dataflow at its top level"
        wrong = f"{file} has no {name!r}" if name else f"say {file}:NAME"
        raise UsageError(f"{wrong}: {hint}")
    if callable(found):
        found = _guarded(found, path)
    if not isinstance(found, Dataflow):
        raise UsageError(f"{text} is a {type(found).__name__}, not a snapline.Dataflow")
    return found


def _load_module(path: Path) -> ModuleType:
    name = f"snapline_flow_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)  # so that the file can import what lies beside it
    loader = spec.loader
    _guarded(lambda: loader.exec_module(module), path)
    pickler: Any = cloudpickle  # cloudpickle has no types
    pickler.register_pickle_by_value(module)  # Spark's workers cannot import it
    return module


def _guarded(call: Callable[[], Any], path: Path) -> Any:
    """Call code of the user's file; what it raises becomes a UsageError that names the line."""
    try:
        return call()
    except SyntaxError as error:
        own = error.filename is None or Path(error.filename) == path.resolve()
        raise UsageError(
            f"{path if own else error.filename}, line {error.lineno}: {error.msg}"
        ) from error
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if Path(frame.filename) == path.resolve()]
        where = f", line {lines[-1]}" if lines else ""
        kind = "" if isinstance(error, UsageError) else f"{type(error).__name__}: "
        raise UsageError(f"{path}{where}: {kind}{error}") from error
