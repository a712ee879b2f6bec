"""One simulated run with the costs of a profile: from the description of a run to its figures.

The job is built as for a real run, from the same description. With a dilution of K, one simulated record
stands for K: sources get a K-th of the rate, due records gather for K times as long, so messages are as
large as they would be, and all that is paid per message, record or byte costs K times as much. Counts that
follow from messages are multiplied by K at the end. What follows from time and not from messages stays:
checkpoints, markers, heartbeats. Latency is not a figure of a diluted run, because records gather longer,
and its state is smaller than it would be.
"""

import time
from dataclasses import dataclass, replace

import numpy as np

from snapline.batch import Batch, concat
from snapline.chaos.faults import parse
from snapline.chaos.targets import aimed, check
from snapline.dataflow.pools import pool_slots
from snapline.engine.job import Job
from snapline.errors import UsageError
from snapline.ids import Millis
from snapline.kernels import cache
from snapline.loss.answers import deviation_of, right_answer
from snapline.metrics.deviation import DeviationFigures
from snapline.metrics.figures import Figures
from snapline.protocols import PROTOCOLS
from snapline.rundir.program import build_job, find_program, with_pool_sizes
from snapline.rundir.spec import Spec
from snapline.scale.metered_world import MeteredWorld
from snapline.scale.profile import Profile
from snapline.sim.inject import SimInjector
from snapline.storage.api import View
from snapline.workload.common.answers import AnswerColumns
from snapline.workload.common.losses import Ints

PATIENCE_MS: Millis = 600_000
"""A run that has not ended by itself so long after its input never will."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a simulated run came to."""

    spec: Spec
    figures: Figures
    cores: int | None  # that all slots shared; None: each had one of its own
    dilution: int
    problem: str | None  # why it ended early, if it did
    simulated_s: float  # virtual time
    took_s: float  # real time


def predict(
    spec: Spec, profile: Profile, *, cores: int | None = None, dilution: int = 1
) -> Prediction:
    """Simulate a run and return its figures. Raises UsageError if there cannot be such a run."""
    cache.load_if_asked()
    begun_s = time.monotonic()
    refuse(spec, dilution)
    world, injector = world_of(spec, profile, cores, dilution)
    world.run((spec.duration_ms + PATIENCE_MS) * 1000)
    problem = world.problem if world.finished else "it had not come to its end long after its input"
    figures = whole(world.figures(), dilution, lines=PROTOCOLS[spec.protocol].saves)
    if problem is None and dilution == 1:
        figures = replace(figures, deviation=deviation_in(spec, world, injector))
    return Prediction(
        spec,
        figures,
        cores,
        dilution,
        problem,
        round(world.now_us / 1e6, 3),
        round(time.monotonic() - begun_s, 2),
    )


def refuse(spec: Spec, dilution: int) -> None:
    """Raise UsageError if a run cannot be simulated with costs."""
    if spec.endless:
        raise UsageError("a simulated run has an end: give --duration a time")
    if dilution > 1 and spec.rate != "max" and spec.rate < dilution * spec.slots:
        raise UsageError(
            f"--dilute {dilution} leaves less than a record per second for each of {spec.slots} slots: "
            "choose less, or a higher --rate"
        )


def world_of(
    spec: Spec, profile: Profile, cores: int | None, dilution: int
) -> tuple[MeteredWorld, SimInjector]:
    """The world in which a run is simulated, and who injects its faults, which are planned."""
    spec = with_pool_sizes(spec, find_program(spec).flow)
    faults = aimed(parse(spec.faults), pool_slots(spec.slots, dict(spec.pools)))
    check(faults, spec.all_slots)
    thin = _diluted(spec, dilution)
    job = _lingering(build_job(thin, find_program(thin)), dilution)
    costs = replace(profile.costs(spec.flow, cores), dilution=dilution)
    generate_us = profile.generate_us.get(spec.flow, 0.0)
    warm_up_us = spec.warm_up_ms * 1000
    world = MeteredWorld(job, costs, generate_us=generate_us, warm_up_us=warm_up_us)
    injector = SimInjector(world, faults, spec.seed)
    injector.plan()
    return world, injector


def deviation_in(spec: Spec, world: MeteredWorld, injector: SimInjector) -> DeviationFigures | None:
    """How far the answer of a simulated run is off, as of a real one; None if that cannot be said."""
    program, protocol = find_program(spec), world.job.protocol
    known = program.answer
    if known is None or not (spec.faults or protocol.publishes_at_once):
        return None
    right = right_answer(known.answer, program.flow, spec.slots, known.right)
    return deviation_from(right, known.answer, world, injector)


def deviation_from(
    right: Batch, answer: AnswerColumns, world: MeteredWorld, injector: SimInjector
) -> DeviationFigures:
    """How far the answer of a simulated run is from the right one, from its first fault on."""
    struck = [s.at_ms for s in injector.schedule.strikes() if s.at_ms is not None]
    found, written_ms = _written(world, answer.sink)
    return deviation_of(answer, right, found, written_ms, min(struck, default=0))


def _written(world: MeteredWorld, sink: str) -> tuple[Batch, Ints]:
    """The public rows of a sink, and when each was written."""
    view: View = "uncommitted" if world.job.protocol.publishes_at_once else "committed"
    output = world.storage.output
    pieces = [p for task in world.job.deployment.sinks[sink] for p in output.pieces(task, view)]
    found = [written for piece in pieces for written in output.read(piece)]
    times = [np.full(len(each.rows), each.at_ms, np.int64) for each in found]
    if not found:
        return Batch({}, 0), np.zeros(0, np.int64)
    return concat([each.rows for each in found]), np.concatenate(times)


def _diluted(spec: Spec, dilution: int) -> Spec:
    if spec.rate == "max":
        return replace(spec, records=max(1, spec.records // dilution))
    return replace(spec, rate=max(1, spec.rate // dilution))


def _lingering(job: Job, dilution: int) -> Job:
    """The same job, in which records gather, and watermarks wait, for as much longer."""
    settings = replace(
        job.settings,
        linger_ms=job.settings.linger_ms * dilution,
        watermark_ms=job.settings.watermark_ms * dilution,
    )
    return replace(job, settings=settings)


def whole(figures: Figures, dilution: int, *, lines: bool = True) -> Figures:
    """The figures with the counts that an undiluted run would have, and without what nobody knows.

    Records are counted by lines, as far as there are `lines`: else by slots, which said the whole already.
    """
    if (resources := figures.resources) is not None:
        figures = replace(figures, resources=replace(resources, rss_bytes={}))
    if dilution == 1:
        return figures
    times, spent = dilution if lines else 1, figures.bytes
    if spent is not None and spent.per_record is not None:
        each = round(spent.per_record / times, 6)
        figures = replace(figures, bytes=replace(spent, per_record=each))
    return replace(
        figures,
        latency_ms=None,
        committed_latency_ms=None,
        records_read=_times(figures.records_read, times),
        records_written=_times(figures.records_written, times),
        read_again=_again(figures.read_again, figures.records_read, times),
        written_again=_again(figures.written_again, figures.records_written, times),
        rollbacks=tuple(replace(each, back_records=None) for each in figures.rollbacks),
    )


def _times(count: int | None, dilution: int) -> int | None:
    return None if count is None else count * dilution


def _again(again: int | None, once: int | None, dilution: int) -> int | None:
    """What was done again: all that was counted, which is whole, less what was done once, which is not."""
    return None if again is None or once is None else max(0, again + once - dilution * once)
