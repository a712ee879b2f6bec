"""How long a job with much state stands still when a slot is killed: with a spare, and without.

    python -m benchmarks.engine.restart

q12 over a million bidders on 2 slots; slot 1 is killed in the middle. Prints, for each protocol
with and without a spare, the times of one run: kill -> noticed (detection), noticed -> all tasks ready
(restart), noticed -> latency and backlog as before (recovery; "-": not before the end); and whether the
output was right.
"""

import argparse
import os
import tempfile
from pathlib import Path

import snapline as sl
from snapline.spark.slot_jobs import own_session


def flow(rate: int, bidders: int) -> sl.Dataflow:
    flow = sl.Dataflow("q12 with many bidders")
    feed = sl.nexmark.bids(
        rate=rate, seed=1, columns=("auction", "bidder", "price"), bidders=bidders
    )
    bids = flow.source(feed, name="bids")
    bids.key_by("bidder").tumbling("1h").running_count().sink("counts")
    return flow


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bidders", type=int, default=1_000_000)
    parser.add_argument("--rate", type=int, default=100_000)
    parser.add_argument("--seconds", type=int, default=40)
    parser.add_argument("--protocols", nargs="+", default=["aligned", "uncoordinated"])
    parser.add_argument(
        "--judge", action="store_true", help="compare with a reference; takes a minute"
    )
    asked = parser.parse_args()
    print("protocol       spare  keys     snapshot  detection  restart  recovery  verdict")
    for protocol in asked.protocols:
        for spares in (0, 1):
            measure(asked, protocol, spares)
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


def measure(asked: argparse.Namespace, protocol: str, spares: int) -> None:
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
    metrics = run.metrics
    times = [metrics[name] for name in ("detection_s", "restart_s", "recovery_s")]
    detection, restart, recovery = (f"{each[0]} s" if each and each[0] else "-" for each in times)
    size = f"{metrics['checkpoints']['bytes'] / 1e6:.0f} MB"
    print(
        f"{protocol:14} {spares:5}  {keys:<7}  {size:8}  {detection:9}  {restart:7}  {recovery:8}  "
        f"{run.verdict.kept}",
        flush=True,
    )


if __name__ == "__main__":
    main()
