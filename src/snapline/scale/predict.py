"""One simulated run with the costs of a profile: from the description of a run to its figures.

The job is built as for a real run, from the same description. With a dilution of K, one simulated record
stands for K: sources get a K-th of the rate, due records gather for K times as long, so messages are as
large as they would be, and all that is paid per message, record or byte costs K times as much. Counts that
follow from messages are multiplied by K at the end. What follows from time and not from messages stays:
checkpoints, markers, heartbeats. Latency is not a figure of a diluted run, because records gather longer,
and its state is smaller than it would be.
"""

import time
from dataclasses import dataclass, fields, replace

from snapline.chaos.faults import parse
from snapline.chaos.targets import aimed, check
from snapline.dataflow.pools import pool_slots
from snapline.engine.job import Job
from snapline.errors import UsageError
from snapline.ids import Millis
from snapline.kernels import cache
from snapline.metrics.costs import byte_figures
from snapline.metrics.figures import Figures
from snapline.metrics.second import Volume
from snapline.protocols import PROTOCOLS
from snapline.rundir.program import build_job, find_program, with_pools
from snapline.rundir.spec import Spec
from snapline.scale.metered_world import MeteredWorld
from snapline.scale.profile import Profile
from snapline.sim.inject import SimInjector

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
    world = world_of(spec, profile, cores, dilution)
    world.run((spec.duration_ms + PATIENCE_MS) * 1000)
    problem = world.problem if world.finished else "it had not come to its end long after its input"
    return Prediction(
        spec,
        whole(world.figures(), dilution, lines=PROTOCOLS[spec.protocol].saves),
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


def world_of(spec: Spec, profile: Profile, cores: int | None, dilution: int) -> MeteredWorld:
    """The world in which a run is simulated, with its faults planned."""
    spec = with_pools(spec, find_program(spec).flow)
    faults = aimed(parse(spec.faults), pool_slots(spec.slots, dict(spec.pools)))
    check(faults, spec.all_slots)
    thin = _diluted(spec, dilution)
    job = _lingering(build_job(thin, find_program(thin)), dilution)
    costs = replace(profile.costs(spec.flow, cores), dilution=dilution)
    generate_us = profile.generate_us.get(spec.flow, 0.0)
    warm_up_us = spec.warm_up_ms * 1000
    world = MeteredWorld(job, costs, generate_us=generate_us, warm_up_us=warm_up_us)
    SimInjector(world, faults, spec.seed).plan()
    return world


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
    times = dilution if lines else 1
    records, spent = _times(figures.records_read, times), figures.bytes
    if spent is not None:
        total = Volume(**{each.name: getattr(spent, each.name) for each in fields(Volume)})
        figures = replace(figures, bytes=byte_figures(total, records))
    return replace(
        figures,
        latency_ms=None,
        committed_latency_ms=None,
        records_read=records,
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
