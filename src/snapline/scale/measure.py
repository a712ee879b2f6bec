"""Real runs whose figures are compared with costs and predictions: slots as plain processes, unjudged.

What was counted, and how much CPU time slots used, is taken from the seconds in the middle of a run: at its
beginning slots compile and warm up, and at its end there is less to do.
"""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from snapline.errors import SnaplineError
from snapline.experiments.rates.probing import PATIENT, PaceWatcher
from snapline.metrics.figures import Figures, volume
from snapline.metrics.second import SECOND_US, Second, total_used
from snapline.rundir.spec import Spec
from snapline.runs.run import drive_prepared, prepare
from snapline.runtime.driver.driver import INTERRUPTED, Driver
from snapline.runtime.driver.timeline import published_times
from snapline.runtime.launch.processes import WARM_PROGRAM, ProcessSlots
from snapline.runtime.wire.codec import MARKER_BYTES

WARM_S = 2
"""The seconds at the beginning of a run that do not count."""


@dataclass(frozen=True, slots=True)
class Counted:
    """The work of all slots, and the CPU time that it took, per second."""

    cpu_us: float  # of all slots
    driver_us: float  # CPU time of the driver
    generator_us: float  # of `cpu_us`: to make records
    wakes: float  # how often slots had nothing to do, and waited for something
    steps: float  # inputs that were taken
    read: float  # records, by sources
    messages: float
    rows: float  # records in messages
    payload: float  # bytes of these
    with_header: float  # messages on which a protocol piggybacks something
    headers: float  # bytes that are piggybacked
    frames: float
    messages_logged: float
    logged: float  # bytes of logged messages
    markers: float
    written: float  # records, by sinks
    captures: float
    captured: float  # bytes of snapshots
    beats: float  # heartbeats of slots


@dataclass(frozen=True, slots=True)
class Measured:
    """A real run that is over."""

    spec: Spec
    figures: Figures
    seconds: tuple[Second, ...]

    @property
    def middle(self) -> list[Second]:
        """The seconds that count: whole ones, neither of the beginning nor of the end."""
        end_s = max((s.at_s for s in self.seconds if s.read), default=0)
        return [s for s in self.seconds if WARM_S <= s.at_s < end_s and s.length_us == SECOND_US]

    @property
    def rate(self) -> float:
        """Records that sources read in a second, in the middle of the run."""
        middle = self.middle
        return sum(second.read for second in middle) / max(1, len(middle))


def measure(spec: Spec, enough_s: int | None = None) -> Measured:
    """Carry a run out, in a directory of its own that is removed; end it early after `enough_s` seconds."""

    def enough(second: Second) -> bool:
        return enough_s is not None and second.at_s + 1 >= enough_s

    watcher = PaceWatcher(enough, lambda second: None)

    def begun(driver: Driver) -> None:
        watcher.driver = driver

    with tempfile.TemporaryDirectory(prefix="snapline-scale-") as runs:
        prepared = prepare(replace(spec, oversubscribe=True), runs=Path(runs))
        launcher = ProcessSlots(program=WARM_PROGRAM)
        prepared, driver = drive_prepared(
            replace(prepared, launcher=launcher), PATIENT, watcher, begun
        )
        if driver.problem not in (None, INTERRUPTED):
            told = "; ".join([driver.problem, *launcher.complaints()])
            raise SnaplineError(f"{spec.flow} under {spec.protocol}: {told}")
        sinks = [task for tasks in prepared.job.deployment.sinks.values() for task in tasks]
        times = published_times(driver.directory.output, sinks)
        figures = driver.timeline.figures(times, prepared.job.options.interval_ms)
        return Measured(spec, figures, tuple(driver.timeline.seconds))


def counted(measured: Measured, beat_s: float) -> Counted:
    """What was counted in the middle of a run, per second."""
    middle = measured.middle
    if not middle:
        raise SnaplineError("a run was too short to be measured")
    total, bytes_ = total_used(middle), volume(middle)
    count, usage = len(middle), total.usage
    cpu = {name: cpu_us for name, (cpu_us, _) in total.processes.items()}
    slots_us = sum(us for name, us in cpu.items() if name != "driver")
    found = (
        *(slots_us, cpu.get("driver", 0), usage.generator_us, usage.wakes, usage.steps),
        *(
            sum(s.read for s in middle),
            usage.messages,
            usage.rows,
            bytes_.payload,
            usage.messages
            if bytes_.headers
            else 0,  # a protocol piggybacks on all messages, or on none
            bytes_.headers,
            usage.frames,
            usage.messages if bytes_.log else 0,  # and it logs all of them, or none
            bytes_.log,
        ),
        *(bytes_.markers / MARKER_BYTES, sum(s.written for s in middle), _captures(middle)),
        *(bytes_.snapshots, count * measured.spec.all_slots / beat_s),
    )
    return Counted(*(each / count for each in found))


def _captures(seconds: Sequence[Second]) -> int:
    return sum(len(second.checkpoint_us) for second in seconds)
