"""One simulated run: from a case to an outcome.

A case (`case.py`) is everything that decides a run. Its seed also draws the world (how slow links, store
and slots are) and the settings (batches, credits, deltas), so that a sweep of seeds meets many worlds and
not one world many times.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from snapline.batch import Batch, concat
from snapline.chaos.strikes import Strike, vacuous
from snapline.core.guarantee import Guarantee
from snapline.core.protocol import CheckpointProtocol, Options
from snapline.core.topology import Topology
from snapline.dataflow.deploy import deploy
from snapline.dataflow.protection import barrier_refusal
from snapline.engine.job import Job, Settings
from snapline.engine.options import (
    engine_settings,
    is_fused,
    protocol_options,
    unfit_option,
)
from snapline.errors import (
    InvariantBroken,
    OperatorFailed,
    ProtocolViolation,
    StorageError,
)
from snapline.ids import Millis, SlotId
from snapline.journal.entry import Entry
from snapline.journal.loss_happenings import Declared
from snapline.kernels import cache
from snapline.loss.bound import SIMULATED, Allowances
from snapline.loss.judge import judge_losses
from snapline.protocols import PROTOCOLS, refusal
from snapline.sim.case import Case, draws_policies, faults_of, flow_of, pools_of
from snapline.sim.inject import SimInjector
from snapline.sim.policies import with_drawn_policies
from snapline.sim.watch import fencing, invariants
from snapline.sim.watch.watched import WatchedWorld
from snapline.sim.world.costs import Costs
from snapline.storage.api import View, rows_of
from snapline.workload import WORKLOADS
from snapline.workload.common.base import Problem
from snapline.workload.common.losses import Excuses

PATIENCE_MS: Millis = 120_000
"""A run that has not ended by itself after this much virtual time never will."""


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


def build_job(case: Case, protocol: CheckpointProtocol, rng: random.Random) -> Job:
    """The job of a case: what it does not say itself is drawn, with the world, from its seed."""
    flow = flow_of(case)
    if draws_policies(case):
        flow = with_drawn_policies(flow, case.seed)
    lean = is_fused(case.options, default=False)
    deployment = deploy(flow, case.slots, lean=lean, pools=dict(pools_of(case)))
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
    if why := _doubt(case, world):
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


def _doubt(case: Case, world: WatchedWorld) -> str | None:
    """Why nobody can say that the promise was kept, though the oracle found nothing wrong."""
    doubts, level = WORKLOADS[case.workload].doubts, world.job.guarantee
    nothing_lost = level is Guarantee.BOUNDED_LOSS and not world.monitor.declared
    return None if doubts is None or nothing_lost else doubts(case.params, level)


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
    declared: Sequence[Declared],
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
