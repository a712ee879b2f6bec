"""Snapline beside Flink on the same cores: records per second, and latency at a fixed rate.

    python -m benchmarks.flink.compare --queries q1,q12 --repeats 5 --seconds 4 --rates 1000,100000 --docs

Both make the same records in process, take exactly-once checkpoints every second, and have as many slots
(parallelism) as there are cores for them. They run in turns, never at the same time; every run is judged:
its number of rows and their checksum must be those of `checks.py`. A first run of each tells how much input
it needs for the time asked for, and does not count. Flink runs with object reuse and without; ratios are to
the better one. The tables go to `results/compare.md`, and with `--docs` into `docs/performance.md`, too.
"""

import argparse
import re
import subprocess
from collections.abc import Callable
from statistics import median

from benchmarks.common import snapline_side
from benchmarks.common.checks import Load
from benchmarks.common.pages import RESULTS, Session, call, names, numbers, parser_of, spread, table
from benchmarks.common.snapline_side import judged, load_of, paced
from benchmarks.flink import flink_peer
from snapline.protocols import PROTOCOLS

PILOT_RECORDS = 2_000_000
FLINK_NEEDS = 2.5  # so much more input: it has its warm-up to read, and is faster afterwards
LATENCY_WARM_MS = 5_000
BUFFERS_MS = (1, 100)  # after which Flink sends a buffer that is not full; 100 is its default
EGRESS = ", egress log"
REUSE, COPY = "Flink, objects reused", "Flink, objects copied"
DOCS_PAGE = RESULTS.parents[1] / "docs" / "performance.md"
MARKS = ("<!-- compare -->", "<!-- /compare -->")
HOW = (
    "Sinks count rows and add up a checksum; with *egress log* Snapline writes all rows to files and",
    "publishes them with its checkpoints, instead. Records per second: Snapline's from the first record",
    "due to the last one counted or written, start and end included; Flink's after a warm-up of 40 % of",
    "its input until its first source has ended. Latency: from the moment at which a record is due to the",
    "sink's write of the count that contains it (Snapline: to the egress log), without the first 5 s;",
    "Flink sends a buffer that is not full after 1 ms, or after 100 ms, its default.",
)

Measured = snapline_side.SnaplineRun | flink_peer.FlinkRun
System = Callable[[Load], Measured]
Figures = dict[str, dict[str, list[float]]]
"""What was measured: per query and system, one figure a repeat."""


def title(protocol: str) -> str:
    """How a protocol is called in the tables."""
    return f"Snapline `{protocol}`"


def ours(asked: argparse.Namespace, protocol: str, *, egress: bool, warm_ms: int = 0) -> System:
    """Snapline under a protocol."""
    return lambda load: snapline_side.run(
        load, protocol=protocol, interval_ms=asked.interval_ms, egress=egress, warm_ms=warm_ms
    )


def flink(
    asked: argparse.Namespace, *, reuse: bool, buffer_ms: int = 100, warm_ms: int = 0
) -> System:
    """Flink, with these settings."""
    return lambda load: flink_peer.run(
        load,
        reuse=reuse,
        heap=asked.heap,
        interval_ms=asked.interval_ms,
        buffer_ms=buffer_ms,
        warm_ms=warm_ms,
    )


def throughput(session: Session, asked: argparse.Namespace) -> Figures:
    """Records per second, measured in turns."""
    compared: dict[str, System] = {}
    for protocol in asked.protocols:
        compared[title(protocol)] = ours(asked, protocol, egress=False)
        compared[title(protocol) + EGRESS] = ours(asked, protocol, egress=True)
    compared |= {REUSE: flink(asked, reuse=True), COPY: flink(asked, reuse=False)}
    figures: Figures = {query: {name: [] for name in compared} for query in asked.queries}
    loads: dict[tuple[str, str], Load] = {}
    for query in asked.queries:
        for name, system in compared.items():
            pilot = load_of(query, PILOT_RECORDS, asked.slots)
            needed = judged(pilot, system(pilot)).rate * asked.seconds
            needed *= FLINK_NEEDS if name in (REUSE, COPY) else 1
            loads[query, name] = load_of(query, max(needed, PILOT_RECORDS), asked.slots)
            session.say(f"-  {query:<4} {name:<30} takes {loads[query, name].records:,} records")
    for repeat in range(asked.repeats):
        for (query, name), load in loads.items():
            found = judged(load, compared[name](load))
            figures[query][name].append(found.rate)
            session.say(
                f"{repeat + 1}  {query:<4} {name:<30} {found.rate / 1e6:7.3f} M rec/s of "
                f"{load.records / 1e6:.1f} M, {found.checkpoints} checkpoints, right"
            )
    return figures


def latency(session: Session, asked: argparse.Namespace) -> Figures:
    """p50 and p99 of q12 at fixed rates, in milliseconds, measured in turns."""
    warm_ms = LATENCY_WARM_MS
    compared = {
        title(protocol): ours(asked, protocol, egress=True, warm_ms=warm_ms)
        for protocol in asked.latency_protocols
    }
    for buffer_ms in BUFFERS_MS:
        name = f"Flink, buffers {buffer_ms} ms"
        compared[name] = flink(asked, reuse=True, buffer_ms=buffer_ms, warm_ms=warm_ms)
    figures: Figures = {
        f"{rate:,} rec/s, {name}": {"p50": [], "p99": []}
        for rate in asked.rates
        for name in compared
    }
    for repeat in range(asked.repeats):
        for rate in asked.rates:
            load = paced("q12", rate, asked.seconds + warm_ms / 1000, asked.slots)
            for name, system in compared.items():
                found = judged(load, system(load))
                row = figures[f"{rate:,} rec/s, {name}"]
                row["p50"].append(found.p50_ms)
                row["p99"].append(found.p99_ms)
                session.say(
                    f"{repeat + 1}  {rate:>7,} rec/s {name:<24} p50 {found.p50_ms:5.1f}, p99 "
                    f"{found.p99_ms:5.1f} ms, right"
                )
    return figures


def throughput_table(figures: Figures) -> list[str]:
    """The medians, and the ratios of neighbouring runs: the first system to the better Flink."""
    rows = []
    for query, rates in figures.items():
        better = max((REUSE, COPY), key=lambda name: median(rates[name]))
        first = next(iter(rates))
        ratios = [a / b for a, b in zip(rates[first], rates[better], strict=True)]
        shown = [f"{median(each) / 1e6:.2f}" for each in rates.values()]
        rows.append([query, *shown, f"**{median(ratios):.2f}**", spread(ratios)])
    systems = list(next(iter(figures.values())))
    last = (f"{systems[0]} to the better Flink", "lowest to highest")
    return table(["million rec/s", *systems, *last], rows)


def latency_table(figures: Figures) -> list[str]:
    """The medians, each with its spread."""
    rows = []
    for name, found in figures.items():
        cells = [(f"**{median(each):.1f}**", spread(each, 1)) for each in found.values()]
        rows.append([name, *cells[0], *cells[1]])
    head = ["q12", "p50 ms", "lowest to highest", "p99 ms", "lowest to highest"]
    return table(head, rows)


def setting(asked: argparse.Namespace) -> str:
    """What ran, and how."""
    version = re.search("<flink.version>(.*)</", (flink_peer.HOME / "pom.xml").read_text())
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr
    return (
        f"Medians of {asked.repeats}. Snapline on {asked.slots} slots; Flink "
        f"{version[1] if version else '?'} on {java.splitlines()[0]} with a heap of {asked.heap}, "
        f"parallelism {asked.slots}, state on the heap. Exactly-once checkpoints every "
        f"{asked.interval_ms} ms on both. All outputs were right."
    )


def tables_of(page: str) -> str:
    """The tables of a page, as they stand in it."""
    lines = page.splitlines()
    kept = [
        line
        for line, behind in zip(lines, [*lines[1:], ""], strict=True)
        if line.startswith("|") or (not line and behind.startswith("|"))
    ]
    return "\n".join(kept).strip("\n")


def shown_in(text: str) -> str:
    """The tables that a page of the documentation shows between its marks."""
    return text.partition(MARKS[0])[2].partition(MARKS[1])[0].strip("\n")


def rewritten(text: str, page: str) -> str:
    """A page of the documentation with the tables of a results page between its marks."""
    before, mark, rest = text.partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    if not mark or not end:
        raise SystemExit(f"{DOCS_PAGE.name} has no place for the tables: {MARKS[0]} ... {MARKS[1]}")
    return f"{before}{mark}\n{tables_of(page)}\n{end}{after}"


def main() -> None:
    parser = parser_of(__doc__, "compare.md")
    parser.add_argument("--queries", type=names, default=["q1", "q3", "q8", "q12"])
    parser.add_argument("--rates", type=numbers, default=[1_000, 100_000], help="for latencies")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=10, help="of each timed run, about")
    parser.add_argument("--slots", type=int, default=2, help="and cores, and parallelism")
    parser.add_argument("--protocols", type=names, default=["aligned"], help="for records/s")
    parser.add_argument("--latency-protocols", type=names, default=["aligned", "uncoordinated"])
    parser.add_argument("--interval-ms", type=int, default=1_000, help="between checkpoints")
    parser.add_argument("--heap", default="4g", help="of Flink's JVM")
    parser.add_argument(
        "--docs", action="store_true", help="put the tables into docs/performance.md, too"
    )
    asked = parser.parse_args()
    unknown = {*asked.protocols, *asked.latency_protocols} - set(PROTOCOLS)
    if unknown or not asked.protocols:
        parser.error(f"protocols are {', '.join(PROTOCOLS)}, not {', '.join(unknown) or 'none'}")
    session = Session(cores=asked.slots)
    flink_peer.build()
    tables = []
    if asked.queries:
        tables.append(throughput_table(throughput(session, asked)))
    if asked.rates:
        tables.append(latency_table(latency(session, asked)))
    page = session.write(asked.to, "Snapline beside Flink", [setting(asked), *HOW], tables)
    if asked.docs:
        DOCS_PAGE.write_text(rewritten(DOCS_PAGE.read_text(), page))


if __name__ == "__main__":
    call(main)
