"""Snapline on Spark beside Flink and native code, on the same cores: rates, CPU, memory and latencies.

    python -m benchmarks.compare.systems --record all.jsonl                     # all of it: two hours
    python -m benchmarks.compare.systems --parts throughput,anchors --queries q12 --record all.jsonl
    python -m benchmarks.compare.systems --parts throughput --queries q5,q7 --record sliding.jsonl
    python -m benchmarks.compare.systems --parts latency --rates half --neighbour busy --record all.jsonl
    python -m benchmarks.compare.systems --page-from all.jsonl --docs           # the page, of all sittings

All make the same records in process, have as many slots (threads, parallelism) as there are cores for them,
and take exactly-once checkpoints every second, but for anchors that say otherwise. They run in turns, never
at the same time; every run is judged: its number of rows and their checksum must be those of `checks.py`. A
first run of each tells how much input it needs for the time asked for, and does not count.

Windows of q5 and q7 slide; Flink has windows of its own for that. There is no native code for these two.

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
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.common import kernels
from benchmarks.common.on_spark import OnSpark
from benchmarks.common.pages import Session, call, names, parser_of
from benchmarks.compare import figures, tables, turns
from benchmarks.compare.figures import Record, Sitting
from benchmarks.compare.neighbour import NEIGHBOURS
from benchmarks.compare.sides import Systems
from benchmarks.flink import flink_peer
from benchmarks.native import native_peer
from snapline.protocols import PROTOCOLS

PARTS = ("throughput", "anchors", "latency", "ten")
TEN = 10
TITLE = "Snapline beside Flink and native code"


def uses_flink(asked: argparse.Namespace) -> bool:
    """Whether Flink is a part of what was asked for."""
    return "flink" in asked.systems and asked.parts != ["anchors"]


def setting(asked: argparse.Namespace) -> str:
    """What ran, and how."""
    told = [
        f"Medians of {asked.repeats}; Snapline on {asked.slots} slots ({kernels.choose(asked)})"
    ]
    if uses_flink(asked):
        version = re.search("<flink.version>(.*)</", (flink_peer.HOME / "pom.xml").read_text())
        java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True)
        told.append(
            f"Flink {version[1] if version else '?'} on {java.stderr.splitlines()[0]} with a heap of "
            f"{asked.heap}, parallelism {asked.slots}, state on the heap"
        )
    return f"{'; '.join(told)}. Checkpoints every {asked.interval_ms} ms."


def measure(session: Session, record: Record, asked: argparse.Namespace) -> None:
    """All parts that were asked for."""
    missing = native_peer.missing()
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
        shared = (record.sittings[-1].id, asked.interval_ms, asked.heap, spark)
        systems = Systems(*shared, numpy=asked.kernels == "numpy")
        if {"throughput", "anchors"} & {*asked.parts}:
            turns.throughput(session, record, systems, asked)
        if "latency" in asked.parts:
            paces = {
                name: turns.half_of(session, systems, asked) if name == tables.HALF else float(name)
                for name in asked.rates
            }
            turns.latency(session, record, systems, asked, paces, asked.slots)
        if "ten" in asked.parts:
            turns.latency(session, record, systems, asked, {"1000": 1_000.0}, TEN)


def parser() -> argparse.ArgumentParser:
    """What can be asked for."""
    parser = parser_of(__doc__, "compare.md")
    add = parser.add_argument
    add("--parts", type=names, default=[*PARTS], help=", ".join(PARTS))
    add(
        "--systems",
        type=names,
        default=[*turns.WHERE, "flink"],
        help=", ".join([*turns.WHERE, "flink"]),
    )
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
        "systems": (*turns.WHERE, "flink"),
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
        if uses_flink(asked):
            flink_peer.build()
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
