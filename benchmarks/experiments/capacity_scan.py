"""Whether the search for a capacity finds what a plain scan finds: q12 and q3, several times.

    python -m benchmarks.experiments.capacity_scan --queries q12,q3 --times 3

Each time `snapline capacity` searches, and then rates in steps of 5 % around what it found are tried one
after the other, upwards. The span of either begins a step below the lowest rate at which a try was not
sustained, and ends a step above the highest at which one was; on a noisy machine tries contradict each
other, and a span has several steps. The two spans should overlap. Two slots as plain processes, messages of
ten records, a checkpoint every second; every run that keeps pace is judged.
"""

import argparse
import tempfile
from pathlib import Path

from benchmarks.common.pages import Session, call, names, parser_of, table
from snapline.experiments.rates.capacity import SearchForm, Trial
from snapline.experiments.rates.probing import Prober, find_capacity
from snapline.rundir.spec import spec_from

STEP = 1.05
AROUND = 4  # steps below and above the estimate
FORM = SearchForm(STEP, 3, 8)


def scan(prober: Prober, estimate: int, session: Session) -> tuple[float, float]:
    """The span in which a scan of rates has the capacity."""
    trials = []
    for power in range(-AROUND, AROUND + 1):
        trials.append(prober.attempt(round(estimate * STEP**power)))
        session.say(f"   {trials[-1].rate:>9,} {told(trials[-1])}")
    failed = [trial.rate for trial in trials if not trial.sustained]
    kept = [trial.rate for trial in trials if trial.sustained]
    low = min(failed, default=trials[-1].rate * STEP) / STEP
    high = max(kept, default=trials[0].rate / STEP) * STEP
    return low, max(low * STEP, high)


def told(trial: Trial) -> str:
    """What became of a try."""
    return "sustained" if trial.sustained else f"not sustained: {trial.because[0]}"


def measure(query: str, time: int, session: Session, runs: Path) -> list[str]:
    """One search and one scan: a row of the table."""
    given = {
        "flow": query, "protocol": "aligned", "slots": 2, "interval": "1s", "options": {"batch": 10},
    }  # fmt: skip
    prober = Prober(spec_from(given, str), None, runs, FORM.window_s)
    found = find_capacity(prober, FORM)
    for trial in found.trials:
        session.say(f"   {trial.rate:>9,} {told(trial)}")
    ends, span = f"{found.low:,} to {found.high:,}", f"{found.span[0]:,} to {found.span[1]:,}"
    session.say(f"{query} {time}: ends {ends}, span {span} ({len(found.trials)} tries)")
    low, high = scan(prober, found.estimate, session)
    overlap = low <= found.span[1] and found.span[0] <= high
    session.say(f"{query} {time}: scan {low:,.0f} to {high:,.0f}, {overlap}")
    return [query, str(time), ends, span, f"{low:,.0f} to {high:,.0f}", "yes" if overlap else "no"]


def main() -> None:
    parser = parser_of(__doc__, "capacity_scan.md")
    parser.add_argument("--queries", type=names, default=["q12", "q3"])
    parser.add_argument("--times", type=int, default=3)
    asked: argparse.Namespace = parser.parse_args()
    session = Session(cores=2)
    with tempfile.TemporaryDirectory(prefix="snapline-scan-") as runs:
        rows = [
            measure(query, time, session, Path(runs))
            for time in range(1, asked.times + 1)
            for query in asked.queries
        ]
    how = [f"Commit {session.commit()}. Records per second; every run that kept pace was right."]
    head = ["query", "time", "ends of the search", "its span", "span of the scan", "overlap"]
    session.write(asked.to, "Search and scan for a capacity", how, [table(head, rows)])


if __name__ == "__main__":
    call(main)
