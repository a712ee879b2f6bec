"""Measures a profile: short real runs, a fit of their CPU time to the work that was counted, and probes.

A slot counts what it does: records, messages, bytes, markers, snapshots. Runs at several rates, with
several sizes of batches, intervals and protocols do these in different proportions, so from the CPU time of
all of them follows what each costs. Slots are plain processes, and a start is that of a plain process: on
Spark, starts take other times.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Final, Literal, TypeAlias

import numpy as np

from snapline.errors import SnaplineError
from snapline.experiments.machine.facts import machine_facts
from snapline.metrics.figures import Figures
from snapline.protocols.aligned import ALIGNED
from snapline.protocols.hmnr import HMNR
from snapline.protocols.none import NONE
from snapline.protocols.uncoordinated import UNCOORDINATED
from snapline.rundir.spec import Spec
from snapline.runtime.driver.roster import Timeouts
from snapline.scale import probes
from snapline.scale.least_squares import nonnegative
from snapline.scale.measure import Counted, Measured, counted, measure
from snapline.scale.profile import Fit, Profile, Residual
from snapline.wording import plural
from snapline.workload import WORKLOADS

WORKLOAD: Final = "q12"
SLOTS: Final = 2
DURATION_MS: Final = 6_000
RECORDS: Final = 400_000_000
"""More than a run at full speed takes in until it is ended."""

KILL: Final = f"kill slot=1 at={DURATION_MS // 2}ms"
OFTEN, SELDOM = 250, 2_000  # milliseconds between two checkpoints
IDLE: Final = 50
"""Records a second with which a slot has next to nothing to do."""

BEAT_S: Final = Timeouts().heartbeat_s

FEATURES: Final[Mapping[str, str]] = {
    "wake_us": "wakes",
    "step_us": "steps",
    "read_us": "read",
    "message_us": "messages",
    "row_us": "rows",
    "byte_us": "payload",
    "header_us": "with_header",
    "header_byte_us": "headers",
    "frame_us": "frames",
    "log_us": "messages_logged",
    "log_byte_us": "logged",
    "marker_us": "markers",
    "write_us": "written",
    "capture_us": "captures",
    "capture_byte_us": "captured",
    "beat_us": "beats",
}
"""The costs that are found by the fit, and the work that each is the price of."""


@dataclass(frozen=True, slots=True)
class Planned:
    """One run of a calibration."""

    protocol: str
    rate: int | Literal["max"]  # max: all records are due at once, and the run is ended early
    interval_ms: int = SELDOM
    batch: int | None = None
    slots: int = SLOTS

    def spec(self, workload: str) -> Spec:
        """The run as it is described to the engine."""
        return Spec(
            workload,
            protocol=self.protocol,
            slots=self.slots,
            rate=self.rate,
            records=RECORDS,
            duration_ms=DURATION_MS,
            interval_ms=self.interval_ms,
            options=() if self.batch is None else (("batch", self.batch),),
        )

    def __str__(self) -> str:
        batch = "" if self.batch is None else f", batch {self.batch}"
        rate = "full speed" if self.rate == "max" else f"{self.rate:,}/s"
        slots = plural(self.slots, "slot")
        return f"{self.protocol}, {slots}, {rate}, every {self.interval_ms} ms{batch}"

    def measured(self, workload: str) -> Measured:
        """Carry it out."""
        return measure(self.spec(workload), DURATION_MS // 1000 if self.rate == "max" else None)


def planned() -> list[Planned]:
    """The runs: protocols that log, piggyback and send markers, at rates that fill messages differently.

    Where slots are idle, heartbeats and checkpoints are all that they do. At low rates they mostly wake up;
    at full speed they mostly work on records, or on messages if these are small: only there it shows what a
    message costs a slot that need not wake up for it.
    """
    plain = NONE.name
    runs = [
        Planned(plain, IDLE),
        Planned(plain, 2_000),
        Planned(plain, 20_000),
        Planned(plain, "max"),
    ]
    runs += [Planned(plain, 20_000, slots=1), Planned(plain, 20_000, batch=4)]
    runs += [Planned(plain, "max", batch=1), Planned(plain, "max", batch=10)]
    for name in (ALIGNED.name, UNCOORDINATED.name, HMNR.name):
        runs += [Planned(name, rate, OFTEN) for rate in (IDLE, 5_000)]
        runs += [Planned(name, 40_000, SELDOM)]
        runs += [Planned(name, "max", OFTEN), Planned(name, 10_000, SELDOM, batch=4)]
        runs += [Planned(name, "max", SELDOM, batch=10)]
    return runs


Teller: TypeAlias = Callable[[str, int, int], None]
"""Is told what is measured next, the how-manieth step that is, and of how many."""


def calibrate(
    workloads: Sequence[str] = (WORKLOAD,), tell: Teller = lambda what, step, of: None
) -> Profile:
    """Measure a profile on this machine."""
    runs = [(workload, each) for workload in workloads for each in planned()]
    steps = len(runs) + 3
    found: list[Sample] = []
    for number, (workload, each) in enumerate(runs, start=1):
        tell(f"{workload} under {each}", number, steps)
        measured = each.measured(workload)
        found.append(Sample(f"{workload}: {each}", measured, counted(measured, BEAT_S)))
    costs, residuals = fit(found)
    tell("a slot that is killed", steps - 2, steps)
    killed = measure(replace(Planned(ALIGNED.name, 5_000).spec(workloads[0]), faults=KILL))
    tell("the store, connections and the start of a process", steps - 1, steps)
    probed = {
        **probes.store_costs(),
        **probes.link_costs(),
        "launch_us": probes.launch_us(),
        "restore_byte_us": probes.restore_us(workloads[0]),
        "detect_us": 1e6 * median(killed.figures.detection_s or (0.005,)),
        "control_us": _reporting_us([each.measured.figures for each in found]),
        "driver_beat_us": median(each.work.driver_us / each.work.beats for each in found),
    }
    tell("how long it takes to make the records of each workload", steps, steps)
    made = {name: round(probes.generator_us(name), 4) for name in WORKLOADS}
    fitted = Fit(tuple(workloads), tuple(sorted({p.slots for _, p in runs})), residuals)
    rounded = {name: float(f"{us:.4g}") for name, us in {**costs, **probed}.items()}
    return Profile(rounded, made, machine_facts(Path.cwd()), fitted)


@dataclass(frozen=True, slots=True)
class Sample:
    """One run, and what was counted in it."""

    run: str
    measured: Measured
    work: Counted


def fit(samples: Sequence[Sample]) -> tuple[dict[str, float], tuple[Residual, ...]]:
    """The costs that explain the CPU time of these runs best, by relative error, and what they leave over.

    The CPU time of generators is known by itself, and is no part of it.
    """
    if not samples:
        raise SnaplineError("without runs there is nothing to fit")
    spent = np.array([each.work.cpu_us - each.work.generator_us for each in samples])
    work = np.array([[getattr(s.work, name) for name in FEATURES.values()] for s in samples])
    costs = nonnegative(work / spent[:, None], np.ones(len(samples)))
    fitted = work @ costs
    residuals = tuple(
        Residual(each.run, round(float(us), 1), round(float(by_costs), 1))
        for each, us, by_costs in zip(samples, spent, fitted, strict=True)
    )
    return dict(zip(FEATURES, map(float, costs), strict=True)), residuals


def _reporting_us(figures: Sequence[Figures]) -> float:
    """How long a report takes to the coordinator, as checkpoints tell it."""
    known = [each.checkpoint_phases_ms for each in figures if each.checkpoint_phases_ms is not None]
    return 1000 * median(each.reporting.median for each in known) if known else 500.0
