"""One simulated run: from a case to an outcome.

A case is everything that decides a run: protocol, workload, seed, size and faults. The seed also draws the
world (how slow links, store and slots are) and the settings (batches, credits, deltas), so that a sweep of
seeds meets many worlds and not one world many times.
"""

import json
import random
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial

from snapline.batch import Batch, concat
from snapline.chaos.faults import Fault, parse
from snapline.chaos.plan import draw
from snapline.chaos.strikes import Strike, vacuous
from snapline.chaos.targets import check
from snapline.core.guarantee import Guarantee
from snapline.core.protocol import CheckpointProtocol, Options
from snapline.core.topology import Topology
from snapline.dataflow.deploy import deploy
from snapline.dataflow.graph import Dataflow
from snapline.dataflow.protection import barrier_refusal
from snapline.dataflow.usage.policies import Sayings, inputs_rule, save_rule
from snapline.durations import write_duration
from snapline.engine.job import Job, Settings
from snapline.engine.options import (
    GivenOptions,
    engine_settings,
    is_fused,
    option_named,
    protocol_options,
    stored_options,
    unfit_option,
)
from snapline.errors import (
    InvariantBroken,
    OperatorFailed,
    ProtocolViolation,
    StorageError,
    UsageError,
)
from snapline.ids import Millis, SlotId
from snapline.journal.entry import Entry
from snapline.journal.loss_happenings import TaskLoss
from snapline.kernels import cache
from snapline.loss.bound import SIMULATED, Allowances
from snapline.loss.judge import judge_losses
from snapline.protocols import PROTOCOLS, refusal
from snapline.sim.inject import SimInjector
from snapline.sim.policies import with_drawn_policies
from snapline.sim.watch import fencing, invariants
from snapline.sim.watch.watched import WatchedWorld
from snapline.sim.world.costs import Costs
from snapline.storage.api import View, rows_of
from snapline.workload import WORKLOADS
from snapline.workload.common.base import Params, Problem, Size
from snapline.workload.common.losses import Excuses
from snapline.workload.common.settings import GivenSettings, paired

DURATION_MS: Millis = 2_400
PATIENCE_MS: Millis = 120_000
"""A run that has not ended by itself after this much virtual time never will."""


@dataclass(frozen=True, slots=True)
class Case:
    """One run, completely described."""

    protocol: str
    workload: str
    seed: int
    slots: int = 3
    records: int = 60  # per slot and source
    guarantee: str = Guarantee.EXACTLY_ONCE.value
    faults: str | None = None  # in the grammar; None: drawn from the seed; empty: none
    size: Size = "small"
    hot: int = 0  # percent of the records that name the hot key ...
    hot_ms: Millis = 0  # ... and after how long another key becomes the hot one; 0: never
    settings: GivenSettings = ()  # those of the workload that were given
    options: GivenOptions = ()  # those of engine and protocol that were given; others are drawn
    save: Sayings = ()  # how often operators are saved, and ...
    inputs: Sayings = ()  # ... what becomes of their input while they are away

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", paired(self.settings))  # read from JSON they are lists
        object.__setattr__(self, "options", stored_options(self.options, "options"))
        object.__setattr__(self, "save", save_rule(self.save, "save"))
        object.__setattr__(self, "inputs", inputs_rule(self.inputs, "inputs"))

    @property
    def params(self) -> Params:
        """The size of its input."""
        return Params(
            self.seed,
            self.slots,
            self.records,
            DURATION_MS,
            full=self.size == "full",
            hot=self.hot,
            hot_ms=self.hot_ms,
            settings=self.settings,
        )

    def command(self) -> str:
        """The command that repeats this case."""
        words = ["snapline", "simulate", "--protocol", self.protocol, "--workload", self.workload]
        words += ["--seed", str(self.seed), "--slots", str(self.slots)]
        words += ["--records", str(self.records)]
        if self.guarantee != Guarantee.EXACTLY_ONCE.value:
            words += ["--guarantee", self.guarantee]
        if self.faults is not None:
            words += ["--faults", self.faults]
        if self.size != "small":
            words += ["--size", self.size]
        if self.hot:
            words += ["--hot", str(self.hot)]
        if self.hot_ms:
            words += ["--hot-moves", write_duration(self.hot_ms)]
        known = WORKLOADS[self.workload].settings if self.settings else {}
        for name, value in self.settings:
            words += ["--set", f"{name}={known[name].write(value)}"]
        for name, value in self.options:
            words += ["--option", f"{name}={option_named(name).write(value)}"]
        for option, said in (("--save", self.save), ("--inputs", self.inputs)):
            for operator, how in said:
                words += [option, f"{operator}={how}"]
        return shlex.join(words)

    def to_json(self) -> str:
        """The case as a file holds it."""
        return json.dumps({"case": 1, **asdict(self)}, indent=2)

    @staticmethod
    def from_json(text: str) -> "Case":
        """The case of a file."""
        try:
            fields = json.loads(text)
            if fields.pop("case") != 1:
                raise UsageError("this file was written by another version of Snapline")
            return Case(**fields)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"this is not the file of a simulated run: {error}") from error


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that did not hold."""

    name: str
    story: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of running a case."""

    case: Case
    violation: Violation | None = None
    refused: str | None = None
    stopped: str | None = None  # why the run ended early, if it was right to
    stats: Mapping[str, int] = field(default_factory=dict)
    crashed_after_commit: bool = False
    virtual_ms: Millis = 0
    vacuous: str | None = None  # why this run proves nothing, if it broke nothing
    strikes: tuple[Strike, ...] = ()  # what became of each fault
    problems: tuple[str, ...] = ()  # what a run that promises nothing lost or repeated
    rows: int = 0  # of public output
    faults: str = ""
    journal: tuple[Entry, ...] = ()
    topology: Topology | None = None


def faults_of(case: Case) -> tuple[Fault, ...]:
    """The faults of a case: given, or drawn from its seed."""
    if case.faults is not None:
        faults = parse(case.faults)
        check(faults, case.slots)
        return faults
    return draw(case.seed, case.slots, DURATION_MS)


def flow_of(case: Case) -> Dataflow:
    """The dataflow of a case. Raises GraphError if it has no operator of which something is said."""
    flow = WORKLOADS[case.workload].build(case.params)
    return flow.with_policies(dict(case.save), dict(case.inputs))


def build_job(case: Case, protocol: CheckpointProtocol, rng: random.Random) -> Job:
    """The job of a case: what it does not say itself is drawn, with the world, from its seed."""
    flow = flow_of(case)
    if protocol.heeds_policies and not case.save and not case.inputs:
        flow = with_drawn_policies(flow, case.seed)
    deployment = deploy(flow, case.slots, lean=is_fused(case.options, default=False))
    settings = Settings(
        batch_max_records=rng.choice((3, 8, 100)),
        batch_growth=1,
        linger_ms=rng.choice((40, 80, 120)),
        credit=rng.choice((2, 4, 16)),
        full_every=rng.choice((0, 2, 5)),
        group_rows=random.Random(f"{case.seed}:groups").choice((0, 1, 3, 8)),
        whole_every=(2, 3, 8, 64)[case.seed % 4],
        publish_lag=rng.choice((0, 0, 1)),
        watermark_ms=rng.choice((20, 200)),
        probe_ms=20,
        retry_ms=30,
        feedback_high=rng.choice((4, 200)),
        feedback_low=2,
    )
    options = Options(
        interval_ms=rng.choice((150, 250, 350)),
        deadline_ms=rng.choice((200, 500, 1_500)),
        align_timeout_ms=rng.choice((0, 5, 40)),
        every_records=(0, 0, 0, 0, 0, 0, 0, 25)[case.seed % 8],
        at_window_close=case.seed % 8 == 6,
        line_max_lag=rng.choice((0, 0, 0, 3)),
    )
    name = f"{case.workload}-{case.protocol}-{case.seed}"
    guarantee = Guarantee(case.guarantee)
    if guarantee not in protocol.guarantees:
        guarantee = protocol.guarantees[0]
    return Job(
        name,
        deployment,
        protocol,
        protocol_options(case.options, options),
        guarantee,
        engine_settings(case.options, settings),
        case.seed,
    )


def simulate(
    case: Case,
    journal: bool = False,
    protocol: CheckpointProtocol | None = None,
    stops_ms: Sequence[Millis] = (),
    leaves: Sequence[tuple[SlotId, Millis]] = (),
) -> Outcome:
    """Run a case to its end and judge it; at the times `stops_ms` it stops, and is resumed.

    Each of the slots in `leaves` is asked to leave at its time.
    """
    cache.load_if_asked()
    chosen = protocol or PROTOCOLS[case.protocol]
    rng = random.Random(f"{case.seed}:world")
    costs = Costs.draw(rng)
    job = build_job(case, chosen, rng)
    reason = (
        refusal(chosen, job.topology, job.deployment.protected)
        or barrier_refusal(job.deployment.barriers, chosen, job.guarantee)
        or unfit_option(case.options, job.deployment)
    )
    if reason is not None:
        return Outcome(case, refused=reason)
    faults = faults_of(case)
    world = WatchedWorld(job, costs, keep_journal=journal)
    injector = SimInjector(world, faults, case.seed)
    injector.plan()
    for at_ms in stops_ms:
        world.at(at_ms * 1000, world.stop_run)
    for slot, at_ms in leaves:
        world.at(at_ms * 1000, partial(world.let_leave, slot))
    violation: Violation | None = None
    problems: tuple[str, ...] = ()
    rows = 0
    empty: str | None = None
    try:
        world.run(PATIENCE_MS * 1000)
        problems, rows = _judge_end(case, world, injector.schedule.strikes())
        if world.problem is None:
            empty = _vacuous(case, world, injector.schedule.strikes(), rows)
    except InvariantBroken as error:
        violation = Violation(error.name, error.story)
    except (OperatorFailed, ProtocolViolation, StorageError) as error:
        violation = Violation(type(error).__name__, str(error))
    return Outcome(
        case,
        violation,
        stopped=world.problem,
        stats=dict(world.monitor.stats),
        crashed_after_commit=world.monitor.crashed_after_commit,
        virtual_ms=world.now_us // 1000,
        vacuous=empty,
        strikes=injector.schedule.strikes(),
        problems=problems,
        rows=rows,
        faults="; ".join(map(str, faults)),
        journal=tuple(world.entries or ()),
        topology=job.topology if journal else None,
    )


def _vacuous(case: Case, world: WatchedWorld, strikes: tuple[Strike, ...], rows: int) -> str | None:
    """Why the run proves nothing, if so."""
    if world.job.guarantee is Guarantee.BOUNDED_LOSS and (why := fencing.rival(world)):
        return why
    monitor = world.monitor
    at_once = world.job.protocol.publishes_at_once
    first_us = monitor.first_output_us if at_once else monitor.first_line_us
    return vacuous(
        strikes,
        drawn=case.faults is None,
        losses_ms=[at_us // 1000 for at_us in monitor.losses_us],
        first_line_ms=None if first_us is None else first_us // 1000,
        rows=rows,
    )


def _judge_end(
    case: Case, world: WatchedWorld, strikes: tuple[Strike, ...]
) -> tuple[tuple[str, ...], int]:
    """Judge a run; return what it lost or repeated, if it promised nothing, and its row count."""
    if not world.finished:
        fencing.lost_slot_is_replaced(world)
        invariants.broken(
            "run_ends_by_itself",
            f"after {PATIENCE_MS // 1000} s of virtual time the job is still not done",
        )
    if world.problem is None:
        world.problem = fencing.public_output_is_one_chain(world.monitor)
    if world.problem is not None:
        stats = world.monitor.stats
        if not (stats["damaged"] or stats["launch failed"] or stats["late"]):
            invariants.broken("run_goes_on", f"nothing was damaged, but: {world.problem}")
        return (), 0
    invariants.no_checkpoint_is_useless(world.monitor)
    guarantee = world.job.guarantee
    public = outputs(world)
    if guarantee is Guarantee.BOUNDED_LOSS and fencing.rival(world):
        return (), sum(batch.length for batch in public.values())
    found = (public, states(world), world.monitor.declared, strikes, allowances(world.costs))
    problems = found_wrong(case, world.job, *found)
    lines = tuple(f"{p.kind} {p.record}: {p.because}" for p in problems)
    if lines and guarantee is not Guarantee.NOTHING:
        invariants.broken(f"output_is_{guarantee.value}", lines[0])
    return lines, sum(batch.length for batch in public.values())


def found_wrong(
    case: Case,
    job: Job,
    public: Mapping[str, Batch],
    final: Mapping[str, Mapping[str, Batch]],
    declared: Sequence[TaskLoss],
    strikes: Sequence[Strike],
    allowed: Allowances,
) -> Sequence[Problem]:
    """What is wrong with the output of a run, by what it promised and, if it may lose some, declared."""
    workload = WORKLOADS[case.workload]
    judge = workload.judge
    if job.guarantee is not Guarantee.BOUNDED_LOSS:
        return judge(case.params, public, final, job.guarantee)

    def problems_with(excuses: Excuses) -> Sequence[Problem]:
        if not (workload.judges_losses or excuses.nothing_lost):
            return ()  # nobody knows which of its rows a loss touches
        return judge(replace(case.params, excuses=excuses), public, final, job.guarantee)

    return judge_losses(job, declared, strikes, allowed, problems_with).problems


def allowances(costs: Costs) -> Allowances:
    """What may be lost in a world: where a frame occupies its link for long, jobs fall behind."""
    return replace(SIMULATED, lag_ms=SIMULATED.lag_ms + 45 * costs.link_busy_us // 1000)


def outputs(world: WatchedWorld) -> dict[str, Batch]:
    """The public output of each sink."""
    view: View = "uncommitted" if world.job.protocol.publishes_at_once else "committed"
    result = {}
    for sink, tasks in world.job.deployment.sinks.items():
        batches = list(rows_of(world.storage.output, tasks, view))
        result[sink] = concat(batches) if batches else Batch({}, 0)
    return result


def states(world: WatchedWorld) -> dict[str, dict[str, Batch]]:
    """The state of each operator at the end, part by part, over all its tasks."""
    parts: dict[str, dict[str, list[Batch]]] = {}
    for slot in world.job.slots:
        process = world.current(slot)
        assert process is not None
        for name, task in process.engine.tasks.items():
            operator = name.rpartition("/")[0]
            task.operator.by_group(None)  # the run is over: all of it is wanted
            for part, batch in task.operator.capture(full=True).parts.items():
                rows = parts.setdefault(operator, {}).setdefault(part, [])
                if batch.length:
                    rows.append(batch)
    return {
        operator: {part: concat(rows) if rows else Batch({}, 0) for part, rows in known.items()}
        for operator, known in parts.items()
    }
