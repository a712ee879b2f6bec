"""Whether the advice of `snapline advise protect` is right: its choices beside real runs with real kills.

    python -m benchmarks.experiments.protect --flow q6 --kills 8
    python -m benchmarks.experiments.protect --flow fab --kills 6

The advice is made first, in the simulator. Then its first choice, the one after it (the runner-up, if there
is another operator), all of its choices and nothing are saved in real runs, as plain processes, under the
very kills that the simulator has tried: SIGKILL for a slot of the pools of the two, away for as long as
there. What is compared is how far the answer is off (`deviation`, as one number): predicted and measured,
and in how many of the kills the first choice left it less wrong than the one after it, or than nothing.
Every run is judged.
"""

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from benchmarks.common.pages import Session, call, parser_of, spread, table
from benchmarks.common.plain_run import plain_run
from snapline.rundir.program import find_program
from snapline.rundir.spec import spec_from
from snapline.scale.advice.kills import KillTrials
from snapline.scale.advice.protect import Budget, ProtectAdvice, advise_protect
from snapline.scale.advice.rough import ROUGH
from snapline.scale.profile import read_profile


@dataclass(frozen=True)
class Choice:
    """Operators that are saved, and how far the answer was off under each kill."""

    name: str
    saved: tuple[str, ...]
    predicted: list[float]
    measured: list[float]

    def row(self) -> list[str]:
        saved = ", ".join(self.saved) or "nothing"
        one, other = (f"{fmean(v):.3f} ({spread(v, 3)})" for v in (self.predicted, self.measured))
        return [self.name, saved, one, other]


def advised(asked: argparse.Namespace, session: Session) -> tuple[KillTrials, ProtectAdvice]:
    """What the simulator advises."""
    given = {
        "flow": asked.flow, "protocol": "partial", "slots": 2, "size": "small", "rate": asked.rate,
        "duration": "10s", "interval": "1s",
    }  # fmt: skip
    spec = spec_from(given, str)
    known = find_program(spec).answer
    if known is None:
        raise SystemExit(f"nobody has said which numbers of {asked.flow} matter")
    costs = read_profile(asked.profile) if asked.profile else ROUGH
    trials = KillTrials(spec, costs, known, asked.kills, (500, 2_000))
    found = advise_protect(trials, Budget(asked.budget))
    if not found.chosen:
        raise SystemExit("nothing is advised, so there is no advice to be held to")
    session.say(f"advice after {found.runs} simulated runs: save {', '.join(found.chosen)}")
    return trials, found


def deviation(trials: KillTrials, saved: Sequence[str], kill: str, runs: Path) -> float:
    """How far the answer of one real run is off."""
    spec = replace(trials.saving(saved), faults=kill, oversubscribe=True, spares=1)
    found = plain_run(spec, runs).figures.deviation
    assert found is not None, "the workload says which numbers matter"
    return found.overall


def measure(trials: KillTrials, advice: ProtectAdvice, session: Session) -> list[Choice]:
    """All choices under all kills of the pools of the first two operators, or of the only one."""
    ranked = advice.operators[:2]
    pools = dict.fromkeys(each.pool for each in ranked)
    named: dict[str, tuple[str, ...]] = {
        name: (each.operator,)
        for name, each in zip(("first choice", "runner-up"), ranked, strict=False)
    }
    named |= {"all choices": advice.chosen, "nothing": ()}
    choices = [
        Choice(name, saved, [float(s) for pool in pools for s in trials.scores(saved, pool)], [])
        for name, saved in named.items()
    ]
    with tempfile.TemporaryDirectory(prefix="snapline-protect-") as runs:
        for kill in (kill for pool in pools for kill in trials.kills_of(pool)):
            for choice in choices:
                choice.measured.append(deviation(trials, choice.saved, kill, Path(runs)))
            told = ", ".join(f"{each.name} {each.measured[-1]:.3f}" for each in choices)
            session.say(f"{kill}: {told}")
    return choices


def main() -> None:
    parser = parser_of(__doc__, "protect.md")
    parser.add_argument("--flow", default="q6")
    parser.add_argument("--kills", type=int, default=8, help="of each pool")
    parser.add_argument("--rate", type=int, default=300)
    parser.add_argument("--budget", type=float, default=0.03)
    parser.add_argument("--profile", type=Path, help="of snapline calibrate")
    asked = parser.parse_args()
    session = Session()
    trials, advice = advised(asked, session)
    choices = measure(trials, advice, session)
    best, other = choices[0], choices[1]
    against = f"the {other.name}"
    if len(advice.operators) == 1:
        other, against = choices[-1], "nothing"
    better = sum(a < b for a, b in zip(best.measured, other.measured, strict=True))
    worse = sum(a > b for a, b in zip(best.measured, other.measured, strict=True))
    how = [
        f"Commit {session.commit()}; {asked.flow}, {len(best.measured)} kills, the same for all. How far",
        "the answer is off (1: all rows missing, or off by a typical value): the mean, the lowest and the",
        f"highest. The first choice left it less wrong than {against} under {better} of the kills, and",
        f"more wrong under {worse}. Every output was judged; none was wrong beyond what may be lost.",
    ]
    head = ["", "saved", "predicted", "measured"]
    rows = [choice.row() for choice in choices]
    session.write(asked.to, "What the advice on protection is worth", how, [table(head, rows)])


if __name__ == "__main__":
    call(main)
