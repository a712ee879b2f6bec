"""Snapline on Spark beside Flink and native code, on the same cores: rates, CPU, memory and latencies.

    python -m benchmarks.compare.systems --record all.jsonl                     # all of it: two hours
    python -m benchmarks.compare.systems --parts throughput,anchors --queries q12 --record all.jsonl
    python -m benchmarks.compare.systems --parts latency --rates half --neighbour busy --record all.jsonl
    python -m benchmarks.compare.systems --page-from all.jsonl --docs           # the page, of all sittings

All make the same records in process, have as many slots (threads, parallelism) as there are cores for them,
and take exactly-once checkpoints every second, but for anchors that say otherwise. They run in turns, never
at the same time; every run is judged: its number of rows and their checksum must be those of `checks.py`. A
first run of each tells how much input it needs for the time asked for, and does not count.

Parts: *throughput* takes all input at once, *anchors* puts native code beside it, in the same turns;
*latency* is q12 at fixed rates, on a quiet machine and beside a neighbour that keeps one core busy; *ten*
is the same at 1,000 records a second on ten slots. With `--record` every figure is added to a file, and the
page is made of all that the file has.
"""

import argparse
import re
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.common import kernels
from benchmarks.common.on_spark import OnSpark
from benchmarks.common.pages import Session, call, names, parser_of
from benchmarks.common.snapline_side import load_of, paced
from benchmarks.compare import figures, sides, tables
from benchmarks.compare.figures import Figure, Record, Sitting
from benchmarks.compare.neighbour import NEIGHBOURS, beside
from benchmarks.compare.sides import System, Systems
from benchmarks.flink import flink_peer
from benchmarks.native import native_peer
from snapline.protocols import PROTOCOLS

PARTS = ("throughput", "anchors", "latency", "ten")
WHERE = {"spark": sides.ON_SPARK, "processes": sides.IN_PROCESSES, "egress": sides.EGRESS}
PILOT_RECORDS = 2_000_000
LATENCY_WARM_MS = 5_000
TEN = 10
TITLE = "Snapline beside Flink and native code"


def half_of(session: Session, systems: Systems, asked: argparse.Namespace) -> float:
    """Half of what Snapline takes of q12 when all input is due at once, with the egress log."""
    system = systems.ours(asked.latency_protocols[0], sides.EGRESS)
    needed = float(PILOT_RECORDS)
    for _ in range(3):  # the first ones warm up Spark
        load = load_of("q12", needed, asked.slots)
        rate = system.run(load).rate
        needed = max(rate * asked.seconds, PILOT_RECORDS)
    session.say(f"-  q12, {system.name}: takes {rate:,.0f} rec/s")
    return rate / 2


def compared_in_rates(systems: Systems, asked: argparse.Namespace) -> list[System]:
    """What runs with all input due at once."""
    compared = []
    if "throughput" in asked.parts:
        compared += [
            systems.ours(protocol, WHERE[where])
            for protocol in asked.protocols
            for where in asked.systems
            if where in WHERE
        ]
        if "flink" in asked.systems:
            compared.append(systems.flink(sides.REUSE, reuse=True))
            compared.append(systems.flink(sides.COPY, reuse=False))
    if "anchors" in asked.parts and native_peer.missing() is None:
        compared += [systems.anchor(name) for name in sides.ANCHORS]
    return compared


def throughput(
    session: Session, record: Record, systems: Systems, asked: argparse.Namespace
) -> None:
    """Records per second, measured in turns."""
    compared = compared_in_rates(systems, asked)
    loads = {}
    for query in asked.queries:
        for system in compared:
            pilot = system.run(load_of(query, PILOT_RECORDS, asked.slots))
            needed = min(pilot.rate * asked.seconds * system.needs, system.most)
            load = load_of(query, max(needed, PILOT_RECORDS), asked.slots)
            loads[query, system.name] = load
            session.say(f"-  {query:<4} {system.name:<40} takes {load.records:,} records")
    for turn in range(asked.repeats):
        for query in asked.queries:
            for system in compared:
                found = replace(system.run(loads[query, system.name]), turn=turn)
                record.add(found)
                session.say(
                    f"{turn + 1}  {query:<4} {system.name:<40} {found.rate / 1e6:7.2f} M rec/s of "
                    f"{found.records / 1e6:.1f} M, {found.cpu_s:.1f} CPU s in {found.cpu_seconds:.1f} "
                    f"s, {found.rss / 1e6:,.0f} MB, {found.checkpoints} checkpoints, right"
                )


def latency(
    session: Session,
    record: Record,
    systems: Systems,
    asked: argparse.Namespace,
    paces: dict[str, float],
    slots: int,
) -> None:
    """CPU and latencies of q12 at fixed rates, measured in turns."""
    warm_ms = LATENCY_WARM_MS
    ours = [systems.ours(name, sides.ON_SPARK, warm_ms) for name in asked.latency_protocols]
    if "flink" in asked.systems:
        ours.append(systems.flink(sides.buffered(1), reuse=True, buffer_ms=1, warm_ms=warm_ms))
    default = systems.flink(sides.buffered(100), reuse=True, buffer_ms=100, warm_ms=warm_ms)
    for turn in range(asked.repeats):
        for pace, rate in paces.items():
            load = paced("q12", rate, asked.seconds + warm_ms / 1000, slots)
            for neighbour in asked.neighbour:
                quiet = neighbour == "quiet" and "flink" in asked.systems and slots == asked.slots
                for system in [*ours, *([default] if quiet else [])]:
                    with beside(neighbour):
                        found = system.run(load)
                    found = replace(found, turn=turn, rate=rate, pace=pace, neighbour=neighbour)
                    record.add(found)
                    session.say(f"{turn + 1}  {told(found)}")


def told(found: Figure) -> str:
    """A run at a rate, in one line."""
    return (
        f"{found.rate:>11,.0f} rec/s {found.slots:>2} slots {found.neighbour} {found.system:<34} "
        f"{found.cpu_s / found.cpu_seconds:.2f} CPU s per s, p50 {found.p50_ms:6.1f}, p99 "
        f"{found.p99_ms:6.1f} ms, right"
    )


def setting(asked: argparse.Namespace) -> str:
    """What ran, and how."""
    version = re.search("<flink.version>(.*)</", (flink_peer.HOME / "pom.xml").read_text())
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr
    return (
        f"Medians of {asked.repeats}; Snapline on {asked.slots} slots ({kernels.choose(asked)}); "
        f"Flink {version[1] if version else '?'} on {java.splitlines()[0]} with a heap of "
        f"{asked.heap}, parallelism {asked.slots}, state on the heap. Checkpoints every "
        f"{asked.interval_ms} ms."
    )


def measure(session: Session, record: Record, asked: argparse.Namespace) -> None:
    """All parts that were asked for."""
    missing = native_peer.missing()
    if "flink" in asked.systems:
        flink_peer.build()
    if "anchors" in asked.parts and missing is not None:
        record.note(missing)
        session.say(f"-  {missing}")
    elif "anchors" in asked.parts:
        native_peer.build()
    on_spark = {"latency", "ten"} & {*asked.parts} or {"spark", "egress"} & {*asked.systems}
    with ExitStack() as stack:
        spark = None
        if on_spark and asked.parts != ["anchors"]:
            slots = max(asked.slots, TEN if "ten" in asked.parts else 0)
            spark = stack.enter_context(OnSpark(slots))
        systems = Systems(record.sittings[-1].id, asked.interval_ms, asked.heap, spark)
        if {"throughput", "anchors"} & {*asked.parts}:
            throughput(session, record, systems, asked)
        if "latency" in asked.parts:
            paces = {
                name: half_of(session, systems, asked) if name == tables.HALF else float(name)
                for name in asked.rates
            }
            latency(session, record, systems, asked, paces, asked.slots)
        if "ten" in asked.parts:
            latency(session, record, systems, asked, {"1000": 1_000.0}, TEN)


def parser() -> argparse.ArgumentParser:
    """What can be asked for."""
    parser = parser_of(__doc__, "compare.md")
    add = parser.add_argument
    add("--parts", type=names, default=[*PARTS], help=", ".join(PARTS))
    add("--systems", type=names, default=[*WHERE, "flink"], help=", ".join([*WHERE, "flink"]))
    add("--queries", type=names, default=["q1", "q3", "q8", "q12"])
    add("--rates", type=names, default=["1000", "100000", tables.HALF], help="for latencies")
    add("--neighbour", type=names, default=[*NEIGHBOURS], help="for latencies: quiet, busy")
    add("--repeats", type=int, default=5)
    add("--seconds", type=int, default=10, help="of each timed run, about")
    add("--slots", type=int, default=2, help="and cores, and parallelism")
    add("--protocols", type=names, default=["aligned"], help="for records/s")
    add("--latency-protocols", type=names, default=["aligned"])
    add("--interval-ms", type=int, default=1_000, help="between checkpoints")
    add("--heap", default="4g", help="of Flink's JVM")
    add("--record", type=Path, help="add every figure to this file of JSON lines")
    add("--page-from", type=Path, help="measure nothing: make the page from such a file")
    add("--docs", action="store_true", help="put the tables into docs/performance.md, too")
    kernels.add_option(parser)
    return parser


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    """What was asked for; ends the program if there is no such thing."""
    options = parser()
    asked = options.parse_args(words)
    known = {
        "parts": PARTS,
        "systems": (*WHERE, "flink"),
        "neighbour": NEIGHBOURS,
        "protocols": PROTOCOLS,
        "latency_protocols": PROTOCOLS,
    }
    for option, allowed in known.items():
        if unknown := set(getattr(asked, option)) - set(allowed):
            options.error(f"{option}: {', '.join(allowed)}, not {', '.join(sorted(unknown))}")
    if asked.page_from and not asked.page_from.exists():
        options.error(f"there is no file {asked.page_from}")
    if strange := [name for name in asked.rates if name != tables.HALF and not name.isdecimal()]:
        options.error(f"rates: numbers, or {tables.HALF}, not {', '.join(strange)}")
    return asked


def main() -> None:
    asked = parsed()
    session = Session(cores=asked.slots)
    if asked.page_from:
        record = figures.read(asked.page_from)
    else:
        record = figures.read(asked.record) if asked.record else Record()
        now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        told_by = (session.opening(), session.commit(), session.command(), setting(asked))
        record.begin(Sitting(now, *told_by))
        measure(session, record, asked)
    page = session.keep(asked.to, TITLE, tables.opening(record), tables.tables(record))
    if asked.docs:
        tables.DOCS_PAGE.write_text(tables.rewritten(tables.DOCS_PAGE.read_text(), page))


if __name__ == "__main__":
    call(main)
