"""Simulates what a protocol does: without failures at two intervals, and under two kills."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from snapline.core.guarantee import Guarantee
from snapline.errors import SnaplineError, UsageError
from snapline.ids import Millis
from snapline.metrics.figures import Figures
from snapline.protocols import PROTOCOLS
from snapline.protocols.none import NONE
from snapline.rundir.program import build_job, find_program, with_pool_sizes
from snapline.rundir.spec import Spec
from snapline.scale.advice.weigh import (
    AtInterval,
    Behaviour,
    Choice,
    Needs,
    choose,
    p99s,
    per_checkpoint,
)
from snapline.scale.checks import bytes_per_record
from snapline.scale.marks import Mark, mark_of
from snapline.scale.predict import Prediction, predict
from snapline.scale.profile import Checked, Profile

OFTEN_MS, SELDOM_MS = 500, 2_000
DURATION_MS: Final = 6_000
KILLED_MS: Final = 14_000
KILLS_MS: Final = (3_300, 9_700)
"""When slots are killed: at different distances from a checkpoint, one after the other has recovered."""

BROKEN_MS: Final = 1_000
"""The interval of the run in which slots are killed."""

RUNS: Final = 3
"""The simulated runs for each protocol."""

Teller: TypeAlias = Callable[[str, int, int], None]
"""Is told what is simulated next, the how-manieth run that is, and of how many."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What became of every protocol: the best first."""

    choices: tuple[Choice, ...]
    refused: Mapping[str, str]  # protocols that cannot run this dataflow, or gave nothing, and why
    marks: Mapping[str, tuple[Mark, str]]  # of the best: how far each kind of value can be trusted


def candidates(spec: Spec) -> tuple[list[str], dict[str, str]]:
    """The protocols that can give exactly-once output for a dataflow, and why others cannot run it."""
    able, refused = [], {}
    for name, protocol in PROTOCOLS.items():
        if not protocol.saves or Guarantee.EXACTLY_ONCE not in protocol.guarantees:
            continue
        run = replace(spec, protocol=name, guarantee=Guarantee.EXACTLY_ONCE.value)
        program = find_program(run)
        try:
            build_job(with_pool_sizes(run, program.flow), program)
        except UsageError as error:
            refused[name] = str(error)
        else:
            able.append(name)
    return able, refused


def advise(
    spec: Spec,
    needs: Needs,
    profile: Profile,
    names: list[str],
    *,
    cores: int | None = None,
    tell: Teller = lambda what, run, of: None,
) -> Advice:
    """Simulate each of these protocols, and weigh what they do. Raises UsageError if none can be."""
    simulated = _Simulated(spec, profile, cores, tell, 1 + RUNS * len(names))
    plain, why_not = _plain_busy(simulated)
    choices, refused, last = [], {}, dict[str, Prediction]()
    for name in names:
        try:
            found, last[name] = _behaviour(name, plain, simulated)
            _refuse_timeless(found, needs)
        except UsageError:
            raise
        except SnaplineError as error:
            refused[name] = str(error)
        else:
            choices.append(choose(found, needs))
    if not choices:
        raise UsageError(f"nothing can be predicted: {'; '.join(refused.values())}")
    choices.sort(key=lambda each: (not each.feasible, each.offer.cost))
    best = choices[0].offer
    marks = _marks(last[best.protocol], round(1000 * best.interval_s), profile)
    if why_not is not None:
        marks["overhead"] = (
            Mark.NOT_VALIDATED,
            f"it lacks what logs and headers cost, because {NONE.name} cannot run: {why_not}",
        )
    return Advice(tuple(choices), refused, marks)


def _plain_busy(simulated: "_Simulated") -> tuple[float | None, str | None]:
    """How busy a slot is without checkpoints; or why a run without a protocol is refused."""
    try:
        return _busy(simulated(NONE.name, SELDOM_MS).figures), None
    except UsageError as error:
        return None, str(error)


def _refuse_timeless(found: Behaviour, needs: Needs) -> None:
    """Raise SnaplineError if a latency is asked for, and no row carries the time from which it counts."""
    if needs.p99_ms is not None and p99s(found, needs.latency) is None:
        raise SnaplineError(
            f"no row that was {needs.latency} has a time, so there is no latency: leave --p99 out"
        )


def _marks(
    prediction: Prediction, interval_ms: Millis, profile: Profile
) -> dict[str, tuple[Mark, str]]:
    """How far each kind of value can be trusted: as in a run without failures at this interval."""
    spec = replace(prediction.spec, interval_ms=interval_ms, faults="")
    quiet = replace(prediction, spec=spec)
    return {
        "overhead": mark_of(Checked.CAPACITY, quiet, profile),
        "recovery": (Mark.NOT_VALIDATED, "only restarts are compared, and no catching up"),
        "bytes": mark_of(Checked.BYTES, quiet, profile),
        "p99": (Mark.NOT_VALIDATED, "no latency was compared with real runs"),
    }


class _Simulated:
    """Simulates one run after the other, and tells which."""

    def __init__(
        self, spec: Spec, profile: Profile, cores: int | None, tell: Teller, runs: int
    ) -> None:
        self._spec, self._profile, self._cores = spec, profile, cores
        self._tell, self._runs = tell, runs
        self._steps: Iterator[int] = iter(range(1, runs + 1))

    @property
    def last_slot(self) -> int:
        return self._spec.slots - 1

    def __call__(self, protocol: str, interval_ms: int, faults: str = "") -> Prediction:
        broken = " under kills" if faults else ""
        what = f"{self._spec.flow} under {protocol} every {interval_ms} ms{broken}"
        self._tell(what, next(self._steps), self._runs)
        run = replace(
            self._spec,
            protocol=protocol,
            interval_ms=interval_ms,
            duration_ms=KILLED_MS if faults else DURATION_MS,
            faults=faults,
        )
        found = predict(run, self._profile, cores=self._cores)
        if found.problem is not None:
            raise SnaplineError(f"{what}: {found.problem}")
        return found


def _behaviour(
    protocol: str, plain_busy: float | None, simulated: _Simulated
) -> tuple[Behaviour, Prediction]:
    """What a protocol does; without `plain_busy` its own runs tell how busy it is without checkpoints."""
    quiet = {ms: simulated(protocol, ms) for ms in (OFTEN_MS, SELDOM_MS)}
    often, seldom = (_at(ms, found.figures) for ms, found in quiet.items())
    if plain_busy is None:
        plain_busy = seldom.busy - per_checkpoint(often, seldom) / seldom.interval_s
    kills = "; ".join(f"kill slot={simulated.last_slot} at={at}ms" for at in KILLS_MS)
    broken = simulated(protocol, BROKEN_MS, kills)
    figures = broken.figures
    if not figures.restart_s or not figures.rollbacks:
        raise SnaplineError(f"{protocol}: no recovery was seen")
    count = min(len(figures.detection_s), len(figures.restart_s))
    times = quiet[OFTEN_MS].figures.checkpoints
    longest_ms = times.time_ms.max if times is not None and times.time_ms is not None else 0.0
    return Behaviour(
        protocol,
        plain_busy,
        often,
        seldom,
        figures.detection_s[:count],
        figures.restart_s[:count],
        [each.back_s / (BROKEN_MS / 1000) for each in figures.rollbacks],
        longest_ms / 1000,
    ), broken


def _at(interval_ms: int, figures: Figures) -> AtInterval:
    latencies = (figures.latency_ms, figures.committed_latency_ms)
    written_ms, published_ms = (None if each is None else each.p99 for each in latencies)
    busy, spent = _busy(figures), bytes_per_record(figures)
    return AtInterval(interval_ms / 1000, busy, spent, written_ms, published_ms)


def _busy(figures: Figures) -> float:
    """The share of the time that the busiest slot computes."""
    assert figures.resources is not None
    slots = [s for name, s in figures.resources.cpu_s.items() if name.startswith("slot/")]
    return max(slots) / (DURATION_MS / 1000)
