"""Predictions beside real runs: what `calibrate --check` and the benchmark compare.

Three things are compared, for each workload, protocol and number of slots: the bytes of a run per record,
the rate at full speed relative to that without checkpoints, and how long a restart takes. Real runs share
the cores of this machine, so the simulated ones share as many.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Final, TypeAlias

from snapline.metrics.figures import Figures
from snapline.protocols.none import NONE
from snapline.rundir.spec import Spec
from snapline.scale.measure import measure
from snapline.scale.predict import predict
from snapline.scale.profile import Checked, PredictionCheck, Profile

FULL_SPEED_S: Final = 6
SIMULATED_S: Final = 5.0
"""How long a run at full speed is measured, and about how long its simulation is."""

SIMULATED_RECORDS: Final = 2_000_000
"""How many records a simulated run at full speed has at most; each stands for some if there are more."""

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
    base: dict[tuple[str, int], tuple[float, float]] = {}
    for spec in asked.specs():
        where = f"{spec.flow} under {spec.protocol} on {spec.slots} slots"
        tell(f"{where}: at {spec.rate:,} records/s")
        yield _bytes(spec, profile, cores)
        tell(f"{where}: at full speed")
        predicted, measured = _speeds(spec, profile, cores, asked.turns)
        if spec.protocol == NONE.name:
            base[spec.flow, spec.slots] = predicted, measured
            continue
        base_predicted, base_measured = base[spec.flow, spec.slots]
        ratios = predicted / base_predicted, measured / base_measured
        yield _check(Checked.CAPACITY, spec, *ratios)
        tell(f"{where}: a slot is killed")
        yield from _restart(spec, profile, cores, asked.turns)


def _check(what: Checked, spec: Spec, predicted: float, measured: float) -> PredictionCheck:
    rounded = (float(f"{each:.5g}") for each in (predicted, measured))
    return PredictionCheck(what, spec.flow, spec.protocol, spec.slots, *rounded)


def _bytes(spec: Spec, profile: Profile, cores: int) -> PredictionCheck:
    real = measure(spec).figures
    return _check(
        Checked.BYTES,
        spec,
        bytes_per_record(predict(spec, profile, cores=cores).figures),
        bytes_per_record(real),
    )


def bytes_per_record(figures: Figures) -> float:
    """All bytes of messages, logs, snapshots and markers, per record that was read."""
    assert figures.bytes is not None
    spent = figures.bytes
    kinds = (spent.payload, spent.headers, spent.markers, spent.log, spent.snapshots)
    return sum(kinds) / max(1, figures.records_read or 0)


def _speeds(spec: Spec, profile: Profile, cores: int, turns: int) -> tuple[float, float]:
    """The rate at full speed: predicted, and measured."""
    fast = replace(spec, rate="max", records=RECORDS)
    measured = fmean(measure(fast, FULL_SPEED_S).rate for _ in range(turns))
    return full_speed(fast, profile, cores), measured


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
    return [_check(Checked.RESTART, spec, fmean(predicted), fmean(measured))]
