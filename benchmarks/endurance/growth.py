"""Whether a table that grows stands still: q3 at half of its capacity, until it has gigabytes of state.

    python -m benchmarks.endurance.growth --seconds 150 --state-gb 10
    python -m benchmarks.endurance.growth --seconds 20 --rate 100000                # a trial

Two slots as plain processes, under `aligned` with checkpoints every second. The rate is half of what q3
takes when all input is due at once (`--rate`: this one), or less, if the state would become larger than
`--state-gb`, or than this machine has memory for; the page says so. Of every second the p99 of the
latency is compared with `--limit-ms`; of those above it the page tells what else happened in them:
checkpoints, full captures, arrays that grew, and how long a slot took no input. The output is judged.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.common import kernels, memory
from benchmarks.common.pages import Session, call, parser_of, table
from benchmarks.common.snapline_side import judged, paced
from benchmarks.endurance.flat import QUERY, capacity, run_probed
from benchmarks.endurance.flat_figures import Watch
from benchmarks.endurance.slot_probe import Line
from snapline.metrics.second import Second

MEMORY_SHARE = 0.6  # of what is free: a table that grows may be there twice
GREW = 0.02  # arrays that have so much more room than a second ago have grown, not only filled
SHARE = 0.5  # of the capacity
HEAD = (
    *("second", "p50 ms", "p99 ms", "backlog", "state MB", "RSS MB", "grew MB", "still ms"),
    *("checkpoints", "full captures MB"),
)
MARKS = 10  # how many points of the way the second table shows
HOW = (
    "Of every second: p50 and p99 of the latency of what was written in it; state (as far as arrays are",
    "filled) and RSS of both slots; *grew*: by how much more room than a second ago the arrays of the",
    "state have, if that is more than 2 %; *still*: the longest time in which a slot took no input;",
    "*checkpoints*: those that were stored in it, and the longest from trigger to durable.",
)


@dataclass(frozen=True)
class Moment:
    """One second, as driver and slots saw it."""

    at_s: int
    p50_ms: float | None
    p99_ms: float | None
    backlog: int | None
    checkpoints: int
    checkpoint_ms: float  # the longest of them
    state: int
    rss: int
    grew: int  # bytes of room
    still_ms: float
    full: int  # bytes of full captures


def moments_of(watch: Watch, seconds: Sequence[Second]) -> list[Moment]:
    """The run, second by second."""
    by_slot = [{int(line.at_s): line for line in lines} for lines in watch.lines.values()]
    moments: list[Moment] = []
    stored = 0
    before: list[Line | None] = [None] * len(by_slot)
    for second in seconds:
        lines = [told.get(second.at_s) for told in by_slot]
        known = [line or old for line, old in zip(lines, before, strict=True)]
        pairs = [(line, old) for line, old in zip(lines, before, strict=True) if line]
        grown = [line.held - old.held for line, old in pairs if old and has_grown(old, line)]
        moments.append(
            Moment(
                second.at_s,
                second.p50_ms,
                second.p99_ms,
                second.backlog,
                second.checkpoints - stored,
                max(second.checkpoint_us, default=0) / 1e3,
                sum(line.state for line in known if line),
                sum(line.rss for line in known if line),
                sum(grown),
                max((line.longest_us for line, _ in pairs), default=0.0) / 1e3,
                sum(line.full_bytes for line, _ in pairs),
            )
        )
        stored, before = second.checkpoints, known
    return moments


def has_grown(before: Line, now: Line) -> bool:
    """Whether arrays were made larger between two seconds."""
    return now.held - before.held > GREW * max(before.held, 1)


def above(moments: Sequence[Moment], limit_ms: float, skip_s: int) -> list[Moment]:
    """The seconds that were too slow, without the first."""
    return [
        each
        for each in moments
        if each.at_s >= skip_s and each.p99_ms is not None and each.p99_ms > limit_ms
    ]


def by_growth(moments: Sequence[Moment], slow: Sequence[Moment]) -> list[Moment]:
    """The slow seconds in which arrays grew, or in the one before or after: slots look once a second."""
    grown = {each.at_s for each in moments if each.grew}
    return [each for each in slow if grown & {each.at_s - 1, each.at_s, each.at_s + 1}]


def moment_table(moments: Sequence[Moment]) -> list[str]:
    """A row for each second."""
    return table(HEAD, [_row(each) for each in moments])


def _row(each: Moment) -> list[object]:
    return [
        each.at_s,
        "-" if each.p50_ms is None else f"{each.p50_ms:,.1f}",
        "-" if each.p99_ms is None else f"{each.p99_ms:,.1f}",
        "-" if each.backlog is None else f"{each.backlog:,}",
        f"{each.state / 1e6:,.0f}",
        f"{each.rss / 1e6:,.0f}",
        f"+{each.grew / 1e6:,.0f}" if each.grew else "-",
        f"{each.still_ms:,.0f}",
        f"{each.checkpoints} ({each.checkpoint_ms:,.0f} ms)" if each.checkpoints else "-",
        f"{each.full / 1e6:,.0f}" if each.full else "-",
    ]


def rate_of(session: Session, asked: argparse.Namespace) -> tuple[float, str]:
    """Records per second of the run, and why as many."""
    if asked.rate:
        return asked.rate, "as asked for"
    most, per_record = capacity(session, asked.protocol, asked)
    room = min(asked.state_gb * 1e9, memory.available() * MEMORY_SHARE)
    fits = room / (per_record * asked.seconds)
    if fits < most * SHARE:
        return fits, f"{fits / most:.0%} of capacity: {room / 1e9:.1f} GB of state, and no more"
    return most * SHARE, f"{SHARE:.0%} of its capacity"


def main() -> None:
    parser = parser_of(__doc__, "growth.md")
    parser.add_argument("--protocol", default="aligned")
    parser.add_argument("--seconds", type=int, default=150)
    parser.add_argument("--rate", type=float, help="records per second instead")
    parser.add_argument("--state-gb", type=float, default=10, help="at the end, at most")
    parser.add_argument("--limit-ms", type=float, default=100, help="for the p99 of a second")
    parser.add_argument("--skip-s", type=int, default=5, help="not judged: the first so many")
    parser.add_argument("--slots", type=int, default=2, help="and cores")
    parser.add_argument("--interval-ms", type=int, default=1_000, help="between checkpoints")
    kernels.add_option(parser)
    asked = parser.parse_args()
    chosen = kernels.choose(asked)
    session = Session(cores=asked.slots)
    rate, why = rate_of(session, asked)
    session.say(f"-  {rate:,.0f} rec/s for {asked.seconds} s ({why}), judged at the end")
    load, watch = paced(QUERY, rate, asked.seconds, asked.slots), Watch()
    run = judged(load, run_probed(load, asked.protocol, asked, watch))
    moments = moments_of(watch, run.done.seconds)
    slow = above(moments, asked.limit_ms, asked.skip_s)
    grown = [str(each.at_s) for each in moments if each.grew]
    told = (
        f"**`{asked.protocol}`**, {rate:,.0f} records/s ({why}) for {asked.seconds} s, {chosen}: "
        f"{load.records:,} records, {run.checkpoints} lines, {watch.state / 1e9:.2f} GB of state and "
        f"{run.done.usage.rss / 1e9:.2f} GB of RSS at the end; right. **{len(slow)} seconds with p99 above "
        f"{asked.limit_ms:g} ms** from second {asked.skip_s} on, {len(by_growth(moments, slow))} of "
        f"them within a second of arrays that grew (seconds {', '.join(grown) or 'none'})."
    )
    some = [each for each in moments if each.at_s % max(asked.seconds // MARKS, 1) == 0]
    parts = [[told], moment_table(slow) if slow else [], ["On the way:"], moment_table(some)]
    session.write(asked.to, "A table that grows", HOW, [part for part in parts if part])


if __name__ == "__main__":
    call(main)
