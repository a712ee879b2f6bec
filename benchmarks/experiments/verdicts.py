"""How often a comparison is right: of equal settings, and of settings of which one is slower by 20 %.

    python -m benchmarks.experiments.verdicts --comparisons 10 --pairs 6

q12 at full speed on two slots as plain processes. Each turn has three runs in an order that is drawn: two
that are equal, and one whose sources burn as much CPU time for each record as makes it slower by 20 %. As
many turns as there are pairs make two comparisons, with the statistics of `snapline compare`. The equal
runs should be "not distinguishable" in at least eight of ten, and the slow ones be found in as many. Every
run is judged.
"""

import random
from collections import defaultdict

from benchmarks.common import snapline_side
from benchmarks.common.pages import Session, call, claimed, parser_of, table
from benchmarks.common.real_run import PROGRAM
from benchmarks.common.snapline_side import judged, load_of
from benchmarks.experiments.planted_delay import slower_program
from snapline.experiments.statistics import Difference, answer

SLOTS = 2
PILOT_RECORDS = 4_000_000
SLOWDOWN = 0.20
FIRST, SECOND, SLOW = "first", "second", "slow"


def rate_of(records: float, program: str) -> float:
    """The records per second of one run, which is judged."""
    load = load_of("q12", records, SLOTS)
    run = snapline_side.run(load, protocol="aligned", interval_ms=1_000, program=program)
    return judged(load, run).rate


def measure(session: Session, comparisons: int, pairs: int, seconds: float) -> list[list[str]]:
    """All comparisons, a row of the table for each."""
    rate = rate_of(PILOT_RECORDS, PROGRAM)
    # A source reads a share of all records: so much longer for each of them makes all slower by 20 %.
    delay_s = SLOTS / rate * (1 / (1 - SLOWDOWN) - 1)
    programs = {FIRST: PROGRAM, SECOND: PROGRAM, SLOW: slower_program(delay_s)}
    session.say(f"{rate:,.0f} records/s; {delay_s * 1e9:.0f} ns more for each record when slow")
    drawn, rows = random.Random(1), []
    for number in range(1, comparisons + 1):
        rates: dict[str, list[float]] = defaultdict(list)
        for _ in range(pairs):
            for name in drawn.sample([*programs], len(programs)):
                rates[name].append(rate_of(rate * seconds, programs[name]))
        equal, equally = answer(rates[FIRST], rates[SECOND])
        slower, found = answer(rates[FIRST], rates[SLOW])
        rows.append([
            str(number),
            f"{equal.estimate:.3f} ({equal.low:.3f} to {equal.high:.3f})",
            claimed(equally),
            f"{slower.estimate:.3f} ({slower.low:.3f} to {slower.high:.3f})",
            claimed(found),
        ])  # fmt: skip
        session.say("  ".join(rows[-1]))
    return rows


def main() -> None:
    parser = parser_of(__doc__, "verdicts.md")
    parser.add_argument("--comparisons", type=int, default=10)
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=2, help="of each run, about")
    asked = parser.parse_args()
    session = Session(cores=SLOTS)
    rows = measure(session, asked.comparisons, asked.pairs, asked.seconds)
    alike = sum(row[2] == Difference.NOT_DISTINGUISHABLE for row in rows)
    found = sum(row[4] == Difference.LESS for row in rows)
    how = [
        f"Commit {session.commit()}; {asked.pairs} pairs for each comparison. Of {len(rows)}",
        f"comparisons of equal settings {alike} are not distinguishable; a slowdown of 20 % was found in",
        f"{found}. Ratios of records per second with their 95 % intervals. All outputs were right.",
    ]
    head = ["comparison", "equal settings", "verdict", "slower by 20 %", "verdict"]
    session.write(asked.to, "How often a comparison is right", how, [table(head, rows)])


if __name__ == "__main__":
    call(main)
