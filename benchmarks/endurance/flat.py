"""Whether costs stay flat while the state grows: q3 for ten minutes at half of what it could take.

    python -m benchmarks.endurance.flat --minutes 10 --protocols aligned,uncoordinated
    python -m benchmarks.endurance.flat --minutes 1 --rate 100000 --skip-s 20     # a trial
    python -m benchmarks.endurance.flat --snapshots                               # captures of large states

The join of q3 keeps every person and auction that passes its filters, for ever: its state grows by design,
and nothing else may. A run with all input due at once tells the capacity and how much state a record
leaves. If the state of the whole run would not fit into the memory of this machine, the rate is lowered,
and the page says so. Figures are taken by each slot once a second (`slot_probe.py`), put together to
blocks of ten seconds, and from the second minute on a line is laid through them (`slopes.py`). The output
is judged.

With `--snapshots` operators are filled with 100,000 to 3 million rows, and captured, in this process.
"""

import argparse

from benchmarks.common import memory, snapline_side
from benchmarks.common.checks import Load
from benchmarks.common.pages import Session, call, names, parser_of
from benchmarks.common.snapline_side import judged, load_of, paced
from benchmarks.endurance import captures, slot_probe
from benchmarks.endurance.flat_figures import Watch, blocks_of, minute_table, slope_table

QUERY = "q3"
PILOT_RECORDS = 3_000_000
PILOT_S = 6  # so long the run takes that tells the capacity
MEMORY_SHARE = 0.4  # of what is free: a table that grows is there twice, and is sorted
HOW = (
    "Every second each slot notes its CPU time, its RSS, the size of the arrays in its state, and how long",
    "each capture and each alignment took; the log is what `logs/` takes on disk. Blocks of 10 s from the",
    "second minute on (`--skip-s`): mean, slope per minute by least squares with its 95 % interval (for",
    "fewer, effective points, where neighbours are alike), the slope in percent of the mean, and whether",
    "zero is within the interval. *Blocked*: a task with state stands still for a snapshot, until its",
    "capture is made and its files are handed to the kernel; *capture* is the operator's part of that.",
)


def capacity(session: Session, protocol: str, asked: argparse.Namespace) -> tuple[float, float]:
    """Records per second with all input due at once, and bytes of state that a record leaves."""
    load = load_of(QUERY, PILOT_RECORDS, asked.slots)
    run = judged(load, run_probed(load, protocol, asked, Watch()))
    load, watch = load_of(QUERY, max(run.rate * PILOT_S, PILOT_RECORDS), asked.slots), Watch()
    run = judged(load, run_probed(load, protocol, asked, watch))
    per_record = watch.state / load.records * PILOT_S / (PILOT_S - 1)  # it may lack a second
    session.say(
        f"-  {protocol}: takes {run.rate:,.0f} rec/s, {per_record:.0f} bytes of state a record"
    )
    return run.rate, per_record


def run_probed(
    load: Load, protocol: str, asked: argparse.Namespace, watch: Watch
) -> snapline_side.SnaplineRun:
    """A run whose slots say what they cost; latencies are taken, so rows go to the egress log."""
    return snapline_side.run(
        load,
        protocol=protocol,
        interval_ms=asked.interval_ms,
        egress=True,
        prepare=watch,
        program=slot_probe.PROGRAM,
    )


def measure(session: Session, protocol: str, asked: argparse.Namespace) -> list[list[str]]:
    """The long run under one protocol: what was run, and its tables."""
    seconds = asked.minutes * 60
    most, per_record = capacity(session, protocol, asked)
    rate = asked.rate or most * asked.share
    fits = memory.available() * MEMORY_SHARE / (per_record * seconds)
    rate, lowered = min(rate, fits), rate > fits
    session.say(f"-  {protocol}: {rate:,.0f} rec/s for {asked.minutes:g} min, judged at the end")
    load, watch = paced(QUERY, rate, seconds, asked.slots), Watch()
    run = judged(load, run_probed(load, protocol, asked, watch))
    blocks = blocks_of(watch, run.done.seconds, asked.block_s)
    kept = [block for block in blocks if block.at_s >= asked.skip_s]
    why = ", all that the state leaves room for" if lowered else ""
    told = (
        f"**`{protocol}`**, {rate:,.0f} records/s ({rate / most:.0%} of its capacity{why}) for "
        f"{asked.minutes:g} minutes: {load.records:,} records, {run.tally.count:,} rows, "
        f"{run.checkpoints} lines, {watch.state / 1e6:,.0f} MB of state at the end; right."
    )
    return [[told], slope_table(kept), minute_table(blocks)]


def main() -> None:
    parser = parser_of(__doc__, "flat.md")
    parser.add_argument("--protocols", type=names, default=["aligned", "uncoordinated"])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--share", type=float, default=0.5, help="of the capacity")
    parser.add_argument("--rate", type=float, help="records per second instead")
    parser.add_argument(
        "--skip-s", type=float, default=60, help="not in the slopes: the first so many"
    )
    parser.add_argument("--block-s", type=int, default=10, help="seconds put together to a point")
    parser.add_argument("--slots", type=int, default=2, help="and cores")
    parser.add_argument("--interval-ms", type=int, default=1_000, help="between checkpoints")
    parser.add_argument(
        "--snapshots", action="store_true", help="captures of large states, instead"
    )
    asked = parser.parse_args()
    session = Session(cores=asked.slots)
    if asked.snapshots:
        to = (
            asked.to.with_name("snapshots.md") if asked.to == parser.get_default("to") else asked.to
        )
        session.write(to, "Snapshots of large states", captures.HOW, [captures.measure(session)])
        return
    tables = [part for name in asked.protocols for part in measure(session, name, asked)]
    session.write(asked.to, "Costs while the state grows", HOW, tables)


if __name__ == "__main__":
    call(main)
