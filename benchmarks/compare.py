"""Snapline beside Flink on the same cores: records per second, and latency at a fixed rate.

    python benchmarks/compare.py [--queries q1,q12] [--repeats 5] [--seconds 10] [--rates 1000,100000]

Both make the same records in process, take exactly-once checkpoints every second, and have as many slots
(parallelism) as there are cores for them. They run in turns, never at the same time; every run is judged:
its number of rows and their checksum must be those of `checks.py`. A first run of each tells how much input
it needs for the time asked for, and does not count. Flink runs with object reuse and without; ratios are to
the better one. The table goes to `results/compare.md`, too.
"""

import argparse
import os
import platform
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import flink_peer
import snapline_side
from checks import Load, expected

from snapline.workload.base import Params

EVENT_MS = 60_000  # the times of the input span this, so windows have ten seconds, as in the papers
PILOT_RECORDS = 2_000_000
FLINK_NEEDS = 2.5  # so much more input: it has its warm-up to read, and is faster afterwards
LATENCY_WARM_MS = 5_000
BUFFERS_MS = (1, 100)  # after which Flink sends a buffer that is not full; 100 is its default
SNAPLINE, EGRESS = "Snapline", "Snapline, egress log"
REUSE, COPY = "Flink, objects reused", "Flink, objects copied"
HOW = (
    "Sinks count rows and add up a checksum; with *egress log* Snapline writes all rows to files and",
    "publishes them with its checkpoints, instead. Records per second: Snapline's from the first record",
    "due to the last one counted or written, start and end included; Flink's after a warm-up of 40 % of",
    "its input until its first source has ended. Latency: from the moment at which a record is due to the",
    "sink's write of the count that contains it (Snapline: to the egress log), without the first 5 s;",
    "Flink sends a buffer that is not full after 1 ms, or after 100 ms, its default.",
    "Again: `python benchmarks/compare.py`.",
)

Measured = snapline_side.SnaplineRun | flink_peer.FlinkRun
System = Callable[[Load], Measured]
Figures = dict[str, dict[str, list[float]]]
"""What was measured: per query and system, one figure a repeat."""


def load_of(query: str, records: float, slots: int) -> Load:
    """A query with about so many records, all due at once."""
    share = 3 / 4 if query in ("q3", "q8") else 1  # three auctions, and a person for them
    per_partition = max(3, int(records * share / slots) // 3 * 3)
    return Load(query, Params(1, slots, per_partition, EVENT_MS, at_once=True))


def paced(rate: int, seconds: int, slots: int) -> Load:
    """q12 with records that come at this rate."""
    return Load("q12", Params(1, slots, rate * seconds // slots, seconds * 1000))


def judged(load: Load, measured: Measured) -> Measured:
    """The run, if its output is right."""
    if measured.tally != expected(load):
        raise SystemExit(f"wrong output: {measured.tally}, expected {expected(load)}, of {load}")
    return measured


def systems(asked: argparse.Namespace) -> dict[str, System]:
    """All that is compared, by name."""

    def snapline(load: Load, egress: bool) -> Measured:
        return snapline_side.run(
            load, protocol=asked.protocol, interval_ms=asked.interval_ms, egress=egress
        )

    def flink(load: Load, reuse: bool) -> Measured:
        return flink_peer.run(load, reuse=reuse, heap=asked.heap, interval_ms=asked.interval_ms)

    return {
        SNAPLINE: lambda load: snapline(load, False),
        EGRESS: lambda load: snapline(load, True),
        REUSE: lambda load: flink(load, True),
        COPY: lambda load: flink(load, False),
    }


def throughput(asked: argparse.Namespace) -> Figures:
    """Records per second, measured in turns."""
    compared = systems(asked)
    figures: Figures = {query: {name: [] for name in compared} for query in asked.queries}
    loads: dict[tuple[str, str], Load] = {}
    for query in asked.queries:
        for name, system in compared.items():
            pilot = load_of(query, PILOT_RECORDS, asked.slots)
            needed = judged(pilot, system(pilot)).rate * asked.seconds
            needed *= FLINK_NEEDS if name in (REUSE, COPY) else 1
            loads[query, name] = load_of(query, max(needed, PILOT_RECORDS), asked.slots)
            print(
                f"-  {query:<4} {name:<22} takes {loads[query, name].records:,} records", flush=True
            )
    for repeat in range(asked.repeats):
        for (query, name), load in loads.items():
            found = judged(load, compared[name](load))
            figures[query][name].append(found.rate)
            print(
                f"{repeat + 1}  {query:<4} {name:<22} {found.rate / 1e6:7.3f} M rec/s of "
                f"{load.records / 1e6:.1f} M, {found.checkpoints} checkpoints, right",
                flush=True,
            )
    return figures


def latency(asked: argparse.Namespace) -> Figures:
    """p50 and p99 of q12 at fixed rates, in milliseconds, measured in turns."""
    figures: Figures = {}
    for _ in range(asked.repeats):
        for rate in asked.rates:
            load = paced(rate, asked.seconds + LATENCY_WARM_MS // 1000, asked.slots)
            runs = {
                SNAPLINE: snapline_side.run(
                    load,
                    protocol=asked.protocol,
                    interval_ms=asked.interval_ms,
                    warm_ms=LATENCY_WARM_MS,
                    egress=True,
                )
            }
            for buffer_ms in BUFFERS_MS:
                runs[f"Flink, buffers {buffer_ms} ms"] = flink_peer.run(
                    load,
                    reuse=True,
                    warm_ms=LATENCY_WARM_MS,
                    heap=asked.heap,
                    interval_ms=asked.interval_ms,
                    buffer_ms=buffer_ms,
                )
            for name, measured in runs.items():
                found = judged(load, measured)
                row = figures.setdefault(f"{rate:,} rec/s, {name}", {"p50": [], "p99": []})
                row["p50"].append(found.p50_ms)
                row["p99"].append(found.p99_ms)
                print(
                    f"   {rate:,} rec/s {name}: p50 {found.p50_ms:.1f}, p99 {found.p99_ms:.1f} ms"
                )
    return figures


def throughput_table(figures: Figures) -> list[str]:
    names = " | ".join((SNAPLINE, EGRESS, REUSE, COPY))
    lines = [
        f"| million rec/s | {names} | Snapline to the better Flink | lowest to highest |",
        "|---|---|---|---|---|---|---|",
    ]
    for query, rates in figures.items():
        better = max((REUSE, COPY), key=lambda name: median(rates[name]))
        ratios = [
            ours / theirs for ours, theirs in zip(rates[SNAPLINE], rates[better], strict=True)
        ]
        shown = " | ".join(f"{median(each) / 1e6:.2f}" for each in rates.values())
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        lines.append(f"| {query} | {shown} | **{median(ratios):.2f}** | {spread} |")
    return lines


def latency_table(figures: Figures) -> list[str]:
    lines = [
        "| q12 | p50 ms | lowest to highest | p99 ms | lowest to highest |",
        "|---|---|---|---|---|",
    ]
    for name, found in figures.items():
        cells = [
            f"{median(each):.1f} | {min(each):.1f} to {max(each):.1f}" for each in found.values()
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def report(asked: argparse.Namespace, load_before: float, tables: Sequence[Sequence[str]]) -> str:
    """The page: how it was measured, then the tables."""
    version = re.search("<flink.version>(.*)</", (flink_peer.HOME / "pom.xml").read_text())
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr
    busy = (
        " (a **busy machine**: read no more than orders of magnitude)" if load_before > 0.5 else ""
    )
    return "\n".join(
        [
            "# Snapline beside Flink",
            "",
            f"{datetime.now(UTC):%Y-%m-%d}, {asked.slots} cores, Python {platform.python_version()}, Flink "
            f"{version[1] if version else '?'} on {java.splitlines()[0]} with a heap of {asked.heap}; load "
            f"of the machine before: {load_before:.1f}{busy}. Medians of {asked.repeats}. Snapline: "
            f"`{asked.protocol}` on {asked.slots} slots; Flink: parallelism {asked.slots}, state on the "
            f"heap. Exactly-once checkpoints every {asked.interval_ms} ms on both. All outputs were right.",
            "",
            *HOW,
            *(line for table in tables for line in ("", *table)),
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    names = lambda text: [name for name in text.split(",") if name]  # noqa: E731
    parser.add_argument("--queries", type=names, default=["q1", "q3", "q8", "q12"])
    parser.add_argument("--rates", type=names, default=["1000", "100000"], help="for latencies")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=10, help="of each timed run, about")
    parser.add_argument("--slots", type=int, default=2, help="and cores, and parallelism")
    parser.add_argument("--protocol", default="aligned")
    parser.add_argument("--interval-ms", type=int, default=1_000, help="between checkpoints")
    parser.add_argument("--heap", default="4g", help="of Flink's JVM")
    parser.add_argument("--to", type=Path, default=Path(__file__).parent / "results" / "compare.md")
    asked = parser.parse_args()
    asked.rates = [int(rate) for rate in asked.rates]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as Ctrl-C: what runs is ended, too
    load_before = os.getloadavg()[0]
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: asked.slots])  # children inherit it
    flink_peer.build()
    tables = []
    if asked.queries:
        tables.append(throughput_table(throughput(asked)))
    if asked.rates:
        tables.append(latency_table(latency(asked)))
    page = report(asked, load_before, tables)
    asked.to.parent.mkdir(exist_ok=True)
    asked.to.write_text(page)
    print(page)


if __name__ == "__main__":
    main()
