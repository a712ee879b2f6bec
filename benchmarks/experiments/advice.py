"""Whether the advice of `snapline advise protocol` is right: what it predicts beside real runs.

    snapline calibrate --to profile.json
    python -m benchmarks.experiments.advice --profile profile.json --flow q12 --kills 6

Four settings are run as plain processes: the advice, the runner-up, and the protocol of the advice at a
quarter and at four times its interval; and `none`, for the overhead. Without a failure each runs a few
times: for overhead (CPU time of the busiest slot, relative to `none`) and bytes, and again, with a warm-up,
for p99, which is predicted without failures here. Then each runs once for each kill, for the recovery: the
moment is drawn over one interval, after one is over, because a kill before the first line proves nothing. A
prediction *covers* what was measured if the mean lies between its ends. The *regret* is by how much more
the advice costs than the best of the four, by the measure that it minimises: overhead, and the share of
time that failures cost. Every run is judged. Failures are taken to come often (`--mtbf`), so that intervals
are short and a run of a minute has several checkpoints.
"""

import argparse
import math
import random
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean

from benchmarks.common.pages import Session, call, parser_of, spread, table
from benchmarks.common.plain_run import plain_run
from snapline.metrics.figures import Figures
from snapline.protocols.none import NONE
from snapline.rundir.spec import Spec, spec_from
from snapline.scale.advice.behaviour import advise, candidates
from snapline.scale.advice.weigh import Between, Choice, Needs, Offer, offer_at
from snapline.scale.checks import bytes_per_record
from snapline.scale.profile import read_profile

QUIET_RUNS, QUIET_MS = 3, 12_000
QUIET_INTERVALS = 4  # how many intervals a run without a failure has at least
WARM_UP_MS = 2_000  # what p99 leaves out
KILLED_MS = 4_000  # how long a job has run before a kill at least, beside a whole interval
AFTER_MS = 14_000  # for how long a run goes on after a kill
LEAST_MS, MOST_MS = 50, 15_000  # the intervals that are run: a run takes about a minute at most


@dataclass
class Setting:
    """A protocol at one interval: what is predicted, and what was measured."""

    name: str
    offer: Offer
    busy: list[float] = field(default_factory=list)
    p99_ms: list[float] = field(default_factory=list)
    bytes_per_record: list[float] = field(default_factory=list)
    recovery_s: list[float] = field(default_factory=list)
    never: int = 0  # kills after which the run was over before the job had recovered

    def overhead(self, plain: float) -> float:
        """The share of the capacity that checkpoints take."""
        return 1 - min(1.0, plain / fmean(self.busy))

    def cost(self, plain: float, mtbf_s: float) -> float:
        """What the advice minimises, as it was measured."""
        return self.overhead(plain) + fmean(self.recovery_s) / mtbf_s

    @property
    def interval_ms(self) -> int:
        """The interval, which is one that can be run."""
        return round(1000 * self.offer.interval_s)


def settings_of(asked: argparse.Namespace, spec: Spec, needs: Needs, cores: int) -> list[Setting]:
    """The advice and what it is held against; the program ends if that cannot be run."""
    profile = read_profile(asked.profile)
    able, _ = candidates(spec)
    found = advise(spec, needs, profile, able, cores=cores)
    best, *others = found.choices
    if not best.feasible:
        raise SystemExit(f"nothing fits, so there is no advice to be held to: {best.binding}")
    settings = [setting_of("advice", best, needs)]
    settings += [setting_of("runner-up", other, needs) for other in others[:1]]
    for name, factor in (("a quarter of its interval", 0.25), ("four times its interval", 4.0)):
        settings.append(setting_of(name, best, needs, factor))
    if (longest_ms := max(each.interval_ms for each in settings)) > MOST_MS:
        raise SystemExit(
            f"a checkpoint every {longest_ms / 1000:.1f} s takes too long to be measured: failures that "
            "come more often (--mtbf) ask for shorter intervals"
        )
    return settings


def setting_of(name: str, choice: Choice, needs: Needs, factor: float = 1.0) -> Setting:
    """What is predicted at so many times the interval of a choice, or the shortest that is run.

    The p99 is that without failures, as it is measured.
    """
    interval_s = max(LEAST_MS, round(1000 * factor * choice.offer.interval_s)) / 1000
    offer = offer_at(choice.behaviour, needs, interval_s)
    quiet = offer_at(choice.behaviour, replace(needs, mtbf_s=math.inf), interval_s)
    return Setting(name, replace(offer, p99_ms=quiet.p99_ms))


def busy_of(figures: Figures, duration_ms: int) -> float:
    """The share of the time that the busiest slot computes."""
    assert figures.resources is not None
    used = [s for name, s in figures.resources.cpu_s.items() if name.startswith("slot/")]
    return max(used) / (duration_ms / 1000)


def run_of(spec: Spec, setting: Setting) -> Spec:
    """A run with the protocol and the interval of a setting."""
    return replace(spec, protocol=setting.offer.protocol, interval_ms=setting.interval_ms)


def measure_quiet(spec: Spec, settings: list[Setting], session: Session, runs: Path) -> float:
    """Fill in what runs without a failure come to; return the busy share of those of `none`.

    All are as long as the longest interval asks for. Bytes are told from runs without a warm-up, as these
    count all that they have read.
    """
    ms = max(QUIET_MS, *(QUIET_INTERVALS * each.interval_ms for each in settings))
    quiet, plain = replace(spec, duration_ms=ms), []
    for turn in range(QUIET_RUNS):
        plain.append(busy_of(plain_run(replace(quiet, protocol=NONE.name), runs).figures, ms))
        for setting in settings:
            whole = run_of(quiet, setting)
            figures = plain_run(whole, runs).figures
            setting.busy.append(busy_of(figures, ms))
            setting.bytes_per_record.append(bytes_per_record(figures))
            warm = plain_run(replace(whole, warm_up_ms=WARM_UP_MS), runs).figures.latency_ms
            assert warm is not None
            assert warm.p99 is not None
            setting.p99_ms.append(warm.p99)
            session.say(f"{turn + 1}  {setting.name:<26} p99 {warm.p99:.1f} ms")
    return fmean(plain)


def measure_kills(
    spec: Spec, settings: list[Setting], kills: int, session: Session, runs: Path
) -> None:
    """Fill in how long recoveries take."""
    drawn = random.Random(1)
    for kill in range(kills):
        share = drawn.random()
        for setting in settings:
            at_ms = KILLED_MS + round((1 + share) * setting.interval_ms)
            faults = f"kill slot=1 at={at_ms}ms"
            killed = replace(run_of(spec, setting), duration_ms=at_ms + AFTER_MS, faults=faults)
            figures = plain_run(killed, runs).figures
            recovered = (figures.recovery_s or (None,))[0]
            setting.never += recovered is None
            setting.recovery_s.append(AFTER_MS / 1000 if recovered is None else recovered)
            session.say(f"kill {kill + 1}  {setting.name:<26} {setting.recovery_s[-1]:.2f} s")


def rows_of(setting: Setting, plain: float) -> list[list[str]]:
    """A row for each figure of a setting."""
    offer, overhead = setting.offer, [1 - min(1.0, plain / busy) for busy in setting.busy]
    figures = {
        "overhead": (offer.overhead, overhead, 3),
        "recovery, s": (offer.recovery_s, setting.recovery_s, 2),
        "p99, ms": (offer.p99_ms, setting.p99_ms, 1),
        "bytes per record": (offer.bytes_per_record, setting.bytes_per_record, 1),
    }
    where = f"{setting.name}: {offer.protocol} every {offer.interval_s:.2f} s"
    return [[where, name, *_row(*figure)] for name, figure in figures.items()]


def _row(predicted: Between | None, values: list[float], digits: int) -> list[str]:
    assert predicted is not None, "rows have times"
    mean = fmean(values)
    covered = "yes" if predicted.low <= mean <= predicted.high else "**no**"
    ends = f"{predicted.low:.{digits}f} to {predicted.high:.{digits}f}"
    said = f"{predicted.value:.{digits}f} ({ends})"
    return [said, f"{mean:.{digits}f} ({spread(values, digits)})", covered]


def main() -> None:
    parser = parser_of(__doc__, "advice.md")
    parser.add_argument("--profile", type=Path, required=True, help="of snapline calibrate")
    parser.add_argument("--flow", default="q12")
    parser.add_argument("--rate", type=int, default=10_000)
    parser.add_argument("--mtbf", type=float, default=30, help="seconds between failures")
    parser.add_argument("--kills", type=int, default=6)
    asked = parser.parse_args()
    session, needs = Session(cores=2), Needs(asked.mtbf)
    given = {"flow": asked.flow, "slots": 2, "rate": asked.rate, "options": {"batch": 10}}
    spec = spec_from(given, str)
    settings = settings_of(asked, spec, needs, session.cores)
    with tempfile.TemporaryDirectory(prefix="snapline-advice-") as runs:
        plain = measure_quiet(spec, settings, session, Path(runs))
        measure_kills(spec, settings, asked.kills, session, Path(runs))
    costs = {each.name: each.cost(plain, asked.mtbf) for each in settings}
    rows = [row for each in settings for row in rows_of(each, plain)]
    covered = sum(row[-1] == "yes" for row in rows)
    told = ", ".join(f"{name} {cost:.4f}" for name, cost in costs.items())
    regret = costs["advice"] - min(costs.values())
    never = sum(each.never for each in settings)
    how = [
        f"Commit {session.commit()}; {asked.flow} at {asked.rate:,} records/s, a failure every",
        f"{asked.mtbf:g} s on average, {asked.kills} kills each. {covered} of {len(rows)} means lie",
        f"between the ends of what was predicted. Cost, as measured: {told}.",
        f"Regret of the advice: {regret:.4f}.",
        f"After {never} kills the run was over before the job had recovered; these count as",
        f"{AFTER_MS // 1000} s. All outputs were right.",
    ]
    head = ["setting", "figure", "predicted", "measured", "covered"]
    session.write(asked.to, "What the advice on protocols is worth", how, [table(head, rows)])


if __name__ == "__main__":
    call(main)
