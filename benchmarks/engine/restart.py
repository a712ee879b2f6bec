"""How long a job with much state stands still when a slot is killed: with a spare, and without.

    python -m benchmarks.engine.restart
    python -m benchmarks.engine.restart --kernels numpy,compiled --spares 0 --turns 3

q12 over a million bidders on 2 slots of Spark; slot 1 is killed in the middle. The page has, for each
protocol with and without a spare, and for each form of the kernels, kill -> noticed (detection), noticed ->
all tasks ready (restart), noticed -> latency and backlog as before (recovery; "-": not before the end), and
whether the output was right. Runs of all kinds take turns.
"""

import argparse
import os
import tempfile
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import snapline as sl
from benchmarks.common.pages import Session, call, names, numbers, parser_of, table, with_spread
from snapline.kernels import forms
from snapline.spark.slot_jobs import own_session

HOW = (
    "q12 on 2 slots of a Spark session of Snapline's own; slot 1 is killed with SIGKILL after two thirds",
    "of the input. *Keys*: bidders in the state at the end; *snapshots*: all checkpoints of the run.",
    "*Detection*: kill to noticed; *restart*: noticed to all tasks ready; *recovery*: noticed to latency",
    "and backlog as before (-: not before the end). Seconds: median (lowest to highest).",
)


@dataclass(frozen=True, slots=True)
class Found:
    """The figures of one run."""

    keys: int
    snapshot_mb: float
    detection_s: float
    restart_s: float
    recovery_s: float | None
    kept: str


def flow(rate: int, bidders: int) -> sl.Dataflow:
    flow = sl.Dataflow("q12 with many bidders")
    feed = sl.nexmark.bids(
        rate=rate, seed=1, columns=("auction", "bidder", "price"), bidders=bidders
    )
    bids = flow.source(feed, name="bids")
    bids.key_by("bidder").tumbling("1h").running_count().sink("counts")
    return flow


def measure(asked: argparse.Namespace, protocol: str, spares: int, kernels: str) -> Found:
    """One run, in a session of its own: its workers inherit which kernels they are to use."""
    os.environ[forms.VARIABLE] = kernels
    spark = own_session(slots=2, spares=spares)
    with tempfile.TemporaryDirectory() as runs:
        run = sl.run(
            flow(asked.rate, asked.bidders),
            spark,
            protocol=protocol,
            slots=2,
            spares=spares,
            interval="5s",
            duration=f"{asked.seconds}s",
            faults=f"kill slot=1 at={asked.seconds * 2 // 3}s",
            reference=asked.judge,
            runs=Path(runs),
        )
        keys = len(set(run.batch()["bidder"].tolist()))
    spark.stop()
    told = run.metrics
    if told["lost"] != 1:
        raise SystemExit(f"{told['lost']} slots were lost instead of one: ask again")
    [detection_s], [restart_s], [recovery_s] = (
        told[name] for name in ("detection_s", "restart_s", "recovery_s")
    )
    snapshot_mb = told["checkpoints"]["bytes"] / 1e6
    return Found(keys, snapshot_mb, detection_s, restart_s, recovery_s, run.verdict.kept)


def row(found: list[Found]) -> list[str]:
    """What several runs of one kind come to."""
    recovered = [each.recovery_s for each in found if each.recovery_s is not None]
    return [
        f"{found[0].keys:,}",
        with_spread([each.snapshot_mb for each in found], 0),
        with_spread([each.detection_s for each in found]),
        with_spread([each.restart_s for each in found]),
        with_spread(recovered, 0) if len(recovered) == len(found) else "-",
        ", ".join(sorted({each.kept for each in found})),
    ]


def options() -> argparse.Namespace:
    parser = parser_of(__doc__, "restart.md")
    parser.add_argument("--bidders", type=int, default=1_000_000)
    parser.add_argument("--rate", type=int, default=100_000)
    parser.add_argument("--seconds", type=int, default=40)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--protocols", type=names, default=["aligned", "uncoordinated"])
    parser.add_argument("--spares", type=numbers, default=[0, 1])
    parser.add_argument("--kernels", type=names, default=["auto"], help="auto, numpy, compiled")
    parser.add_argument(
        "--judge", action="store_true", help="compare with a reference; takes a minute"
    )
    return parser.parse_args()


def main() -> None:
    asked = options()
    session = Session()
    kinds = list(product(asked.protocols, asked.spares, asked.kernels))
    found: dict[tuple[str, int, str], list[Found]] = {kind: [] for kind in kinds}
    for turn in range(asked.turns):
        for kind in kinds:
            found[kind].append(measure(asked, *kind))
            session.say(f"turn {turn + 1}: {kind}: {found[kind][-1]}")
    head = ["protocol", "spares", "kernels", "keys", "snapshots MB", "detection s", "restart s"]
    rows = [(f"`{kind[0]}`", *kind[1:], *row(runs)) for kind, runs in found.items()]
    how = [
        f"Commit {session.commit()}. {asked.bidders:,} bidders, {asked.rate:,} records/s for "
        f"{asked.seconds} s, turns: {asked.turns}.",
        *HOW,
    ]
    page = table([*head, "recovery s", "right"], rows)
    session.write(asked.to, "A killed slot with much state", how, [page])


if __name__ == "__main__":
    call(main)
