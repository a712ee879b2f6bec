"""The page of a comparison: what stands in its tables, and its place in the documentation."""

from collections.abc import Callable, Iterable, Sequence
from statistics import median

from benchmarks.common.pages import RESULTS, spread, table, with_spread
from benchmarks.compare.figures import Figure, Record, in_turns
from benchmarks.compare.sides import COPY, IN_PROCESSES, LIMIT, ON_SPARK, REUSE, SYNCED, TIMELY

DOCS_PAGE = RESULTS.parents[1] / "docs" / "performance.md"
MARKS = ("<!-- compare -->", "<!-- /compare -->")
HOW = (
    "All outputs were right. Sinks count rows and add up a checksum; with *egress log* Snapline writes",
    "all rows to files and publishes them with its checkpoints, instead. Records per second: Snapline's",
    "from the first record due to the last one counted or written, start and end included; Flink's after",
    "a warm-up of 40 % of its input until its first source has ended; of the native programs from the",
    "first record to the last. CPU: of all slots from the first record due to the end of the job (driver",
    "and Java beside them are named apart, where they are processes of their own); of Flink's JVM, all of",
    "it, in the time in which its records are counted, so without its start. Memory: the highest, of all",
    "slots together; PSS counts pages that processes share by shares. Latency: from the moment at which a",
    "record is due to the sink's write of the count that contains it (Snapline: to the egress log),",
    "without the warm-up of 5 s; Flink sends a buffer that is not full after 1 ms, or after 100 ms, its",
    "default. A *busy* neighbour keeps one core busy. 10,000 ms are ten seconds or more: a system that",
    "cannot keep the pace.",
)

Cell = Callable[[Sequence[Figure]], str]


def tables(record: Record) -> list[list[str]]:
    """All for which there are figures."""
    rates, paced = record.of("throughput"), record.of("latency")
    made = []
    if rates:
        made.append(_by_query("million rec/s", rates, rate_cell))
        made.append(ratio_table(rates))
        made.append(_by_query("CPU s per million records", rates, cpu_cell))
        made.append(_by_query("MB: RSS (PSS)", rates, memory_cell))
    if paced:
        made.append(latency_table(paced))
    return [lines for lines in made if lines]


def rate_cell(found: Sequence[Figure]) -> str:
    """Records per second."""
    return with_spread([figure.rate / 1e6 for figure in found])


def cpu_cell(found: Sequence[Figure]) -> str:
    """CPU time per record; what runs beside the slots behind a plus."""
    own = median(figure.cpu_s / figure.cpu_records for figure in found) * 1e6
    beside = [
        figure.beside_cpu_s / figure.cpu_records * 1e6
        for figure in found
        if figure.beside_cpu_s is not None
    ]
    return f"{own:.3f}" + (f" + {median(beside):.3f}" if beside else "")


def memory_cell(found: Sequence[Figure]) -> str:
    """Memory; PSS where there are several processes."""
    shares = [figure.pss / 1e6 for figure in found if figure.pss is not None]
    rss = f"{median(figure.rss for figure in found) / 1e6:,.0f}"
    return rss + (f" ({median(shares):,.0f})" if shares else "")


def _distinct(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))


def _queries(figures: Iterable[Figure]) -> list[str]:
    return sorted(_distinct(figure.query for figure in figures), key=lambda name: int(name[1:]))


def _by_query(title: str, figures: Sequence[Figure], cell: Cell) -> list[str]:
    """A row for each system, a column for each query."""
    queries, rows = _queries(figures), []
    for system in _distinct(figure.system for figure in figures):
        row = [system]
        for query in queries:
            found = [each for each in figures if (each.system, each.query) == (system, query)]
            row.append(cell(found) if found else "-")
        rows.append(row)
    return table([title, *queries], rows)


def ratio_table(figures: Sequence[Figure]) -> list[str]:
    """Snapline on Spark to all others: ratios of the runs of the same turn."""
    queries = _queries(figures)
    ours = _distinct(each.system for each in figures if each.system.endswith(ON_SPARK))
    rows = []
    for system in ours:
        others = {
            "the better Flink": (REUSE, COPY),
            IN_PROCESSES: (system.replace(ON_SPARK, IN_PROCESSES),),
            **{name: (name,) for name in (LIMIT, SYNCED, TIMELY)},
        }
        for name, among in others.items():
            cells = [_ratio(figures, query, system, among) for query in queries]
            if any(cell != "-" for cell in cells):
                rows.append([f"{system}, to {name}", *cells])
    return table(["ratio", *queries], rows) if rows else []


def _ratio(figures: Sequence[Figure], query: str, system: str, others: Sequence[str]) -> str:
    """The ratio to the better of the others; of medians, where no turn has both."""
    known = {
        name: [each for each in figures if (each.system, each.query) == (name, query)]
        for name in (system, *others)
    }
    there = {name: known[name] for name in others if known[name]}
    if not known[system] or not there:
        return "-"
    better = max(there.values(), key=lambda found: median(each.rate for each in found))
    ratios = in_turns(known[system], better)
    if ratios:
        return with_spread(ratios)
    ours = median(each.rate for each in known[system])
    return f"**{ours / median(each.rate for each in better):.2f}** (of medians)"


def latency_table(figures: Sequence[Figure]) -> list[str]:
    """CPU and latencies at fixed rates: a row for each rate, number of slots, neighbour and system."""
    rows = []
    cases: dict[tuple[str, int, str, str], list[Figure]] = {}
    for figure in figures:
        case = (figure.pace, figure.slots, figure.neighbour, figure.system)
        cases.setdefault(case, []).append(figure)
    for (pace, slots, neighbour, system), found in cases.items():
        rate = median(each.rate for each in found)
        rows.append(
            [
                f"{rate:,.0f}" if pace != HALF else f"{rate:,.0f} (half of capacity)",
                slots,
                neighbour,
                system,
                _per_second([(each.cpu_s, each.cpu_seconds) for each in found]),
                _per_second([(each.warm_cpu_s, each.warm_seconds) for each in found]),
                _beside(found),
                *(_ms([getattr(each, name) for each in found]) for name in ("p50_ms", "p99_ms")),
            ]
        )
    head = ["q12, rec/s", "slots", "neighbour", "system", "CPU s per s", "after warm-up"]
    return table([*head, "beside", "p50 ms", "p99 ms"], rows)


HALF = "half"
"""How half of the capacity is called, as a rate."""


def _per_second(spent: Sequence[tuple[float, float]]) -> str:
    return with_spread([cpu_s / max(seconds, 1e-9) for cpu_s, seconds in spent])


def _beside(found: Sequence[Figure]) -> str:
    spent = [
        each.beside_cpu_s / each.cpu_seconds for each in found if each.beside_cpu_s is not None
    ]
    return f"{median(spent):.2f}" if spent else "-"


def _ms(values: Sequence[float]) -> str:
    return f"**{median(values):.1f}** ({spread(values, 1)})"


def opening(record: Record) -> list[str]:
    """Where, when and how all sittings measured, and what a reader must know."""
    lines = []
    for sitting in record.sittings:
        lines.append(f"- {sitting.opening} Commit {sitting.commit}. {sitting.setting}")
        lines.append(f"  Again: `{sitting.command}`.")
    return [*lines, "", *HOW, *(f"**Missing:** {note}." for note in record.notes)]


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
