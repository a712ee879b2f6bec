"""Whether a job without an end can go on: what it takes up while slots are killed again and again.

    python -m benchmarks.endurance.endless --minutes 45
    python -m benchmarks.endurance.endless --minutes 3 --kill-s 15 --every-s 5 --plain    # a trial

q12 at a small rate on Spark, with a checkpoint every second; every minute one slot, in turn, gets SIGKILL.
Every ten seconds a census is taken (`census.py`): files and bytes by folder, descriptors, memory of the
driver and of its slots, what the driver holds, and how long a new driver would read before it could
resume. After the first ten minutes (or a fifth of a shorter run) a line is laid through each figure: its
slope per hour, with a 95 % interval. Published output is kept for `--retain`, and what is left at the end
follows on what was deleted: no row is missing, and none came twice.
"""

import argparse
import os
import signal
from contextlib import nullcontext
from statistics import median

from benchmarks.common import snapline_side
from benchmarks.common.checks import Load, expected
from benchmarks.common.on_spark import OnSpark
from benchmarks.common.pages import Session, call, parser_of
from benchmarks.common.real_run import every
from benchmarks.common.snapline_side import SnaplineRun, judged, paced
from benchmarks.endurance.census import Census, slope_table
from snapline.durations import millis, write_duration
from snapline.rundir.journal_file import BOUNDED_BYTES
from snapline.runtime.driver.driver import Driver

QUERY = "q12"
SKIP_S = 600
SHARE = 0.2  # of a run that is too short for `SKIP_S`
HOW = (
    "Taken by `census.py` in the driver's process; files count with directories, descriptors and memory of",
    "slots are summed. *Time to resume*: how long a new driver reads before it can decide. A figure is",
    "flat if zero lies within the 95 % interval of its slope. Published output is kept for a while only;",
    "rows, with those that were deleted, are counted against what the oracle expects.",
)


class Killer:
    """Kills one slot after the other, in turn."""

    def __init__(self, period_s: float) -> None:
        self.period_s = period_s
        self.kills = 0

    def __call__(self, driver: Driver) -> None:
        every(driver, self.period_s, lambda: self._kill(driver))

    def _kill(self, driver: Driver) -> None:
        slots = {m.life[0]: m.hello.pid for m in driver.roster.members.values() if m.life}
        pid = slots.get(self.kills % driver.roster.slots)
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            self.kills += 1


def measure(session: Session, asked: argparse.Namespace) -> list[list[str]]:
    """The run: what was run, and the slopes of what it takes up."""
    census, killer = Census(asked.every_s), Killer(asked.kill_s)

    def prepare(driver: Driver) -> None:
        killer(driver)
        census(driver)

    seconds = asked.minutes * 60
    load = paced(QUERY, asked.rate, seconds, asked.slots)
    session.say(f"-  {asked.protocol}: {asked.rate:,} rec/s for {asked.minutes:g} min")
    retain_ms = millis(asked.retain, "--retain", least_ms=1)
    with nullcontext() if asked.plain else OnSpark(asked.slots) as spark:
        run = checked(
            load,
            snapline_side.run(
                load,
                protocol=asked.protocol,
                interval_ms=asked.interval_ms,
                egress=True,
                prepare=prepare,
                spark=spark,
                journal_bytes=int(asked.journal_mb * 1e6),
                retain_ms=retain_ms,
            ),
        )
    skip_s = asked.skip_s or min(SKIP_S, seconds * SHARE)
    told = (
        f"**`{asked.protocol}`** {'as plain processes' if asked.plain else 'on Spark'}, "
        f"{asked.slots} slots, {asked.rate:,} records/s for {asked.minutes:g} minutes: "
        f"{run.checkpoints} lines, {killer.kills} kills, output kept for {write_duration(retain_ms)}: "
        f"{run.deleted:,} rows deleted, {run.tally.count:,} left; right. "
        f"Load of the machine at the end: {os.getloadavg()[0]:.1f}."
    )
    return [[told], slope_table(census.points, skip_s), resumes(census, seconds)]


def checked(load: Load, run: SnaplineRun) -> SnaplineRun:
    """The run, if its output is right; of rows that were deleted only the number can be."""
    if not run.deleted:
        return judged(load, run)
    rows = run.deleted + run.tally.count
    if rows != expected(load).count:
        raise SystemExit(f"wrong output: {rows} rows, expected {expected(load).count}, of {load}")
    return run


def resumes(census: Census, seconds: float) -> list[str]:
    """The time to resume in each quarter of the run."""
    quarters = []
    for quarter in range(4):
        inside = range(int(seconds * quarter / 4), int(seconds * (quarter + 1) / 4))
        taken = [f["time to resume, ms"] for at_s, f in census.points if int(at_s) in inside]
        quarters.append(f"{median(taken):.0f} ms" if taken else "-")
    return [f"Time to resume, median of each quarter of the run: {', '.join(quarters)}."]


def main() -> None:
    parser = parser_of(__doc__, "endless.md")
    parser.add_argument("--minutes", type=float, default=45)
    parser.add_argument("--protocol", default="aligned")
    parser.add_argument("--rate", type=int, default=1_000, help="records per second")
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--interval-ms", type=int, default=1_000, help="between checkpoints")
    parser.add_argument("--kill-s", type=float, default=60, help="between kills")
    parser.add_argument("--skip-s", type=float, help="not in the slopes: the first so many")
    parser.add_argument("--every-s", type=float, default=10, help="between two censuses")
    parser.add_argument(
        "--journal-mb", type=float, default=BOUNDED_BYTES / 1e6, help="that journals may take"
    )
    parser.add_argument("--retain", default="5m", help="for how long output is kept")
    parser.add_argument("--plain", action="store_true", help="slots as plain processes, no Spark")
    asked = parser.parse_args()
    session = Session()
    session.write(asked.to, "A job without an end", HOW, measure(session, asked))


if __name__ == "__main__":
    call(main)
