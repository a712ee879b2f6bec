"""What the measurements of a run cost: q12 with them and without, in pairs.

    python -m benchmarks.experiments.measuring --pairs 8

*Without*: slots count no messages, bytes, markers, steps or checkpoint times, and never tell what they
used. Records read and written and their latency stay, as they are what is compared: records per second and
CPU time at full speed, p50 and p99 at a tenth of that rate. Two slots as plain processes; every run is
judged.
"""

import random
from collections import defaultdict
from collections.abc import Mapping

from benchmarks.common import snapline_side
from benchmarks.common.pages import Session, call, claimed, parser_of, table
from benchmarks.common.real_run import PROGRAM
from benchmarks.common.snapline_side import judged, load_of, paced
from snapline.experiments.statistics import answer

SLOTS = 2
PILOT_RECORDS = 4_000_000
PACED_SHARE = 0.1
WARM_S = 2
UNMEASURED = """
from snapline.runtime import resources
from snapline.runtime.slot import checkpoint_clock, meter

def nothing(*_, **__):
    return None

for name in ("stepped", "sent", "marked", "transmitted", "stored"):
    setattr(meter.Meter, name, nothing)
for name in ("see", "taking", "captured"):
    setattr(checkpoint_clock.CheckpointClock, name, nothing)
resources.Resources.since = nothing
"""
PROGRAMS = {"with": PROGRAM, "without": UNMEASURED + PROGRAM}


def measure(program: str, records: float, rate: float, seconds: float) -> Mapping[str, float]:
    """One run at full speed, and one at a rate."""
    fast = load_of("q12", records, SLOTS)
    done = snapline_side.run(
        fast, protocol="aligned", interval_ms=1_000, egress=True, program=program
    )
    judged(fast, done)
    slow = paced("q12", rate, seconds + WARM_S, SLOTS)
    timed = snapline_side.run(
        slow,
        protocol="aligned",
        interval_ms=1_000,
        warm_ms=WARM_S * 1000,
        egress=True,
        program=program,
    )
    judged(slow, timed)
    return {
        "records per second": done.rate,
        "CPU us per 4,000 records": done.done.us_per_batch,
        "latency p50, ms": timed.p50_ms,
        "latency p99, ms": timed.p99_ms,
    }


def main() -> None:
    parser = parser_of(__doc__, "measuring.md")
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=4, help="of each run, about")
    asked = parser.parse_args()
    session, drawn = Session(cores=SLOTS), random.Random(1)
    pilot = load_of("q12", PILOT_RECORDS, SLOTS)
    rate = snapline_side.run(pilot, protocol="aligned", interval_ms=1_000, egress=True).rate
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for pair in range(asked.pairs):
        for name in drawn.sample([*PROGRAMS], len(PROGRAMS)):
            figures = measure(
                PROGRAMS[name], rate * asked.seconds, PACED_SHARE * rate, asked.seconds
            )
            for figure, value in figures.items():
                found[figure][name].append(value)
            told = ", ".join(f"{figure} {value:,.1f}" for figure, value in figures.items())
            session.say(f"{pair + 1}  {name:<8} {told}")
    rows = []
    for figure, columns in found.items():
        ratio, verdict = answer(columns["without"], columns["with"])
        span = f"{ratio.estimate:.3f} ({ratio.low:.3f} to {ratio.high:.3f})"
        rows.append([figure, span, claimed(verdict)])
    how = [
        f"Commit {session.commit()}; {asked.pairs} pairs. Ratios of runs with measurements to runs",
        "without, with their 95 % intervals. All outputs were right.",
    ]
    head = ["figure", "with / without", "verdict"]
    session.write(asked.to, "What the measurements cost", how, [table(head, rows)])


if __name__ == "__main__":
    call(main)
