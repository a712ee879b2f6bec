"""Predictions beside real runs: what `calibrate --check` and the benchmark compare.

Three things are compared, for each workload, protocol and number of slots: the bytes of a run per record,
the rate at full speed relative to that without checkpoints, and how long a restart takes. Real runs share
the cores of this machine, so the simulated ones share as many.

Bytes are compared twice. With messages of one record, as the papers have them, they follow from the input.
With messages of any size they also depend on how long records gather, which a slot decides by how busy it
is; that matters for what a protocol adds to each message. At full speed messages have ten records: with
thousands, what limits a run is how fast the disk takes its output, and no checkpoint.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, geometric_mean
from typing import Final, TypeAlias

from snapline.metrics.figures import Figures
from snapline.protocols.none import NONE
from snapline.rundir.spec import Spec
from snapline.scale.measure import measure
from snapline.scale.predict import predict
from snapline.scale.profile import Checked, PredictionCheck, Profile, batch_of, rate_of

FULL_SPEED_S: Final = 6
SIMULATED_S: Final = 5.0
"""How long a run at full speed is measured, and about how long its simulation is."""

SIMULATED_RECORDS: Final = 400_000
"""How many records a simulated run at full speed has at most; each stands for some if there are more."""

SINGLE, FEW = 1, 10
"""How many records a message has, where bytes and where rates are compared as the papers have them."""

SINGLE_RATE: Final = 4_000
"""Records a second of a run whose messages have one each."""

RECORDS: Final = 400_000_000
"""More than any run takes in until it is ended."""


@dataclass(frozen=True, slots=True)
class Comparing:
    """What is compared, and how long each run takes."""

    workloads: Sequence[str]
    protocols: Sequence[str]
    slots: Sequence[int]
    rate: int = 20_000
    duration_ms: int = 8_000
    interval_ms: int = 2_000
    turns: int = 1

    def specs(self) -> Iterator[Spec]:
        """One run at a rate for each cell, in which a slot is killed if the protocol can go on."""
        for workload in self.workloads:
            for slots in self.slots:
                for protocol in (NONE.name, *self.protocols):
                    yield Spec(
                        workload,
                        protocol=protocol,
                        slots=slots,
                        rate=self.rate,
                        duration_ms=self.duration_ms,
                        interval_ms=self.interval_ms,
                    )


Tell: TypeAlias = Callable[[str], None]


def compare(
    asked: Comparing, profile: Profile, cores: int, tell: Tell
) -> Iterator[PredictionCheck]:
    """Run everything for real and simulated, one comparison after the other; `tell` is told what runs."""
    base: dict[tuple[str, int], float] = {}  # what is predicted without checkpoints
    for spec in asked.specs():
        where = f"{spec.flow} under {spec.protocol} on {spec.slots} slots"
        for sized in (spec, _with_messages_of(SINGLE, replace(spec, rate=SINGLE_RATE))):
            size = "" if batch_of(sized) is None else ", a message for each"
            tell(f"{where}: at {sized.rate:,} records/s{size}")
            yield _bytes(sized, profile, cores)
        fast = _with_messages_of(FEW, replace(spec, rate="max", records=RECORDS))
        predicted = full_speed(fast, profile, cores)
        if spec.protocol == NONE.name:
            base[spec.flow, spec.slots] = predicted
            continue
        tell(f"{where}: at full speed, in turns with {NONE.name}")
        measured = geometric_mean(_speed_ratios(fast, asked.turns))
        ratio = predicted / base[spec.flow, spec.slots]
        yield _check(Checked.CAPACITY, fast, ratio, measured, cores)
        tell(f"{where}: a slot is killed")
        yield from _restart(spec, profile, cores, asked.turns)


def _with_messages_of(records: int, spec: Spec) -> Spec:
    return replace(spec, options=(("batch", records),))


def _check(
    what: Checked, spec: Spec, predicted: float, measured: float, cores: int
) -> PredictionCheck:
    return PredictionCheck(
        what,
        spec.flow,
        spec.protocol,
        spec.slots,
        predicted=float(f"{predicted:.5g}"),
        measured=float(f"{measured:.5g}"),
        cores=cores,
        interval_ms=spec.interval_ms,
        rate=rate_of(spec),
        batch=batch_of(spec),
    )


def _bytes(spec: Spec, profile: Profile, cores: int) -> PredictionCheck:
    real = measure(spec).figures
    return _check(
        Checked.BYTES,
        spec,
        bytes_per_record(predict(spec, profile, cores=cores).figures),
        bytes_per_record(real),
        cores,
    )


def bytes_per_record(figures: Figures) -> float:
    """All bytes of messages, logs, snapshots and markers, per record that was read."""
    assert figures.bytes is not None
    spent = figures.bytes
    kinds = (spent.payload, spent.headers, spent.markers, spent.log, spent.snapshots)
    return sum(kinds) / max(1, figures.records_read or 0)


def _speed_ratios(spec: Spec, turns: int) -> Iterator[float]:
    """The rates of real runs at full speed, each over that of a run without checkpoints just before it.

    What a shared machine can do changes from minute to minute.
    """
    for _ in range(turns):
        plain, own = (replace(spec, protocol=name) for name in (NONE.name, spec.protocol))
        without = measure(plain, FULL_SPEED_S).rate
        yield measure(own, FULL_SPEED_S).rate / without


def full_speed(spec: Spec, profile: Profile, cores: int | None) -> float:
    """The rate of a simulated run whose records are all due at once.

    A short run tells how many records there have to be so that checkpoints are taken, too; and how far
    the long one is diluted, so that it does not take long.
    """
    fast = replace(spec, rate="max")
    soon = _rate(replace(fast, records=SIMULATED_RECORDS // 4), profile, cores, 1)
    records = round(soon * SIMULATED_S)
    dilution = -(-records // SIMULATED_RECORDS)
    return _rate(replace(fast, records=records), profile, cores, dilution)


def _rate(spec: Spec, profile: Profile, cores: int | None, dilution: int) -> float:
    found = predict(spec, profile, cores=cores, dilution=dilution).figures.rate
    return found.read if found is not None else 0.0


def _restart(spec: Spec, profile: Profile, cores: int, turns: int) -> list[PredictionCheck]:
    broken = replace(spec, faults=f"kill slot=1 at={spec.duration_ms // 2}ms")
    measured = [s for _ in range(turns) for s in measure(broken).figures.restart_s]
    predicted = predict(broken, profile, cores=cores).figures.restart_s
    if not measured or not predicted:
        return []
    return [_check(Checked.RESTART, spec, fmean(predicted), fmean(measured), cores)]
