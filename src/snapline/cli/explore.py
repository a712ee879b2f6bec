"""`snapline explore`: search the small jobs exhaustively, as far as a budget reaches, and say how far."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table

from snapline.cli.request import chosen_protocols, one_of
from snapline.cli.terminal.console import JSON_VERSION, escape, messages, print_json, results
from snapline.cli.terminal.options import GLOSSARY, Text, default, local_file
from snapline.cli.terminal.tables import PROGRESS_EVERY_S
from snapline.durations import millis
from snapline.errors import UsageError
from snapline.protocols import PROTOCOLS
from snapline.sim.exhaustive.recorded import RecordedCounterexample
from snapline.sim.exhaustive.search import Counterexample, Coverage, Search, shortened
from snapline.sim.exhaustive.small import CYCLE, GRAPHS, RECORDS_MAX, Small
from snapline.sim.exhaustive.story import tell, unusual
from snapline.wording import plural

KEPT, BROKEN, INTERRUPTED = 0, 1, 130

HELP = f"""Search the ways in which a very small job can go wrong, and tell the shortest one that is found.

The job has two slots and a few records; up to two slots crash. Nothing is left to chance: first comes the \
run in which everything happens in its usual order, then every run that leaves this order once (a message, \
an input or a write is held back, a timer goes off early, a slot crashes), then twice, and so on, until \
the budget is used up. So the first run that breaks a promise does so with as few steps as possible. In \
the end the command says how much was covered.

{GLOSSARY} Exit codes: 0 no broken promise was found, 1 one was found, 2 bad input, 130 interrupted."""

EXAMPLES = """[bold]Examples[/bold]

Search every protocol, ten seconds for each graph:
[cyan]snapline explore[/cyan]

Search one protocol thoroughly, on a graph with a cycle:
[cyan]snapline explore --protocol aligned-cyclic --graph cycle --budget 10m[/cyan]

Tell once more what was found:
[cyan]snapline explore --repeat snapline-counterexample-hmnr-chain.json[/cyan]"""

GraphOption = Annotated[
    Text,
    typer.Option(
        metavar="chain|cycle|all",
        help="The dataflow graph: a [cyan]chain[/] of operators, one with a [cyan]cycle[/], which only "
        "some protocols can run, or all that a protocol can run." + default("all"),
    ),
]
SmallRecordsOption = Annotated[
    int | None,
    typer.Option(
        "--records",
        min=1,
        max=RECORDS_MAX,
        metavar="N",
        help="How many records each of the two sources reads." + default("2"),
    ),
]
BudgetOption = Annotated[
    Text,
    typer.Option(
        metavar="TIME",
        help="How much CPU time is spent on each protocol and graph, such as [cyan]30s[/] or [cyan]10m[/]."
        + default("10s"),
    ),
]
RepeatOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        callback=local_file,
        help="Repeat the run of a file that an earlier [cyan]snapline explore[/] wrote about a broken "
        "promise.",
    ),
]


@dataclass(frozen=True, slots=True)
class ShortCounterexample:
    """A counterexample, made short and written down."""

    coverage: Coverage
    shortest: Counterexample
    file: Path | None


def explore(
    protocol: str | None,
    graph: str | None,
    records: int | None,
    budget: str | None,
    *,
    repeat: Path | None,
    as_json: bool,
) -> int:
    """Search what was asked for, or show a counterexample again; return the exit code."""
    if repeat is not None:
        if any(option is not None for option in (protocol, graph, records, budget)):
            raise UsageError("--repeat brings its own run: leave the other options out")
        return _again(repeat, as_json)
    spaces = _spaces(protocol, graph, records or 2)
    budget_ms = millis("10s" if budget is None else budget, "--budget")
    covered: list[Coverage] = []
    interrupted = False
    with _progress(len(spaces)) as tell_progress:
        for name, small in spaces:
            ends = time.process_time() + budget_ms / 1000
            search = Search(small, PROTOCOLS[name], _until(ends, tell_progress))
            covered.append(search.coverage)
            try:
                search.run()
            except KeyboardInterrupt:
                interrupted = True
                break
    found = [_written(coverage) for coverage in covered if coverage.counterexample is not None]
    if as_json:
        print_json(_document(covered, found, interrupted))
    else:
        _print(covered, found, interrupted)
    return INTERRUPTED if interrupted else BROKEN if found else KEPT


def _spaces(protocol: str | None, graph: str | None, records: int) -> list[tuple[str, Small]]:
    graphs = one_of("graph", graph or "all", GRAPHS)
    names = chosen_protocols(protocol)
    spaces = [
        (name, Small(chosen, records))
        for name in names
        for chosen in graphs
        if PROTOCOLS[name].cycles or chosen != CYCLE
    ]
    if not spaces:
        raise UsageError(f"{names[0]} cannot run a cycle: search it with --graph chain")
    return spaces


def _until(ends: float, say: Callable[[Coverage], None]) -> Callable[[Coverage], bool]:
    def go_on(coverage: Coverage) -> bool:
        say(coverage)
        return time.process_time() < ends

    return go_on


@contextmanager
def _progress(spaces: int) -> Iterator[Callable[[Coverage], None]]:
    """Say now and then how far the search is: in place on a terminal, in lines elsewhere."""
    console = messages()
    said_at = time.monotonic()

    def words(coverage: Coverage) -> str:
        place = f"{coverage.protocol} on {coverage.small.graph}"
        return f"{place}: {plural(coverage.runs, 'run')}, {plural(coverage.states, 'state')}; {coverage}"

    if console.is_terminal:
        with console.status("searching") as status:
            yield lambda coverage: status.update(escape(words(coverage)))
        return

    def say(coverage: Coverage) -> None:
        nonlocal said_at
        if time.monotonic() - said_at >= PROGRESS_EVERY_S:
            said_at = time.monotonic()
            console.print(escape(words(coverage)))

    yield say


def _written(coverage: Coverage) -> ShortCounterexample:
    """Make a counterexample short and write it to a file."""
    found = coverage.counterexample
    assert found is not None
    shortest = shortened(coverage.small, PROTOCOLS[coverage.protocol], found)
    recorded = RecordedCounterexample(
        coverage.protocol, coverage.small, shortest.steps, shortest.deviations
    )
    file = Path(f"snapline-counterexample-{coverage.protocol}-{coverage.small.graph}.json")
    try:
        file.write_text(json.dumps(recorded.to_json(shortest), indent=2) + "\n")
    except OSError as error:
        messages().print(f"cannot write {escape(file)}: {escape(error.strerror)}")
        return ShortCounterexample(coverage, shortest, None)
    return ShortCounterexample(coverage, shortest, file)


def _print(
    covered: Sequence[Coverage], found: Sequence[ShortCounterexample], interrupted: bool
) -> None:
    out = results()
    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    for column in ("protocol", "graph"):
        table.add_column(column, no_wrap=True)
    for column in ("runs", "states", "seconds"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("covered")
    for c in covered:
        numbers = f"{c.runs:,}", f"{c.states:,}", f"{c.seconds:.1f}"
        table.add_row(c.protocol, c.small.graph, *numbers, str(c))
    out.print(table)
    for one in found:
        _print_story(one.coverage.protocol, one.coverage.small, one.shortest)
        if one.file is not None:
            out.print(f"repeat with: [cyan]snapline explore --repeat {escape(one.file)}[/]")
    if interrupted:
        out.print("[bold yellow]interrupted[/]: what is covered until then stands above")
    verdict = "[bold green]no counterexample[/] in what was covered"
    out.print(f"[bold red]{len(found)} broke a promise[/]" if found else verdict)


def _print_story(protocol: str, small: Small, found: Counterexample) -> None:
    out = results()
    place = f"{protocol} on {small.graph}, {len(found.steps)} steps"
    out.print(f"\n[bold red]broken[/] [bold]{escape(found.violation.name)}[/]: {place}")
    for deviation in found.deviations:
        out.print(f"unusual: {escape(unusual(deviation))}", soft_wrap=True)
    for line in tell(small, PROTOCOLS[protocol], found):
        out.print(escape(line), soft_wrap=True)
    out.print(f"         so [bold]{escape(found.violation.name)}[/] does not hold: ", end="")
    out.print(escape(found.violation.story), soft_wrap=True)


def _document(
    covered: Sequence[Coverage], found: Sequence[ShortCounterexample], interrupted: bool
) -> dict[str, Any]:
    return {
        "version": JSON_VERSION,
        "kept": "no" if found else "unknown" if interrupted else "yes",
        "interrupted": interrupted,
        "spaces": [
            {
                "protocol": c.protocol,
                "graph": c.small.graph,
                "records": c.small.records,
                "runs": c.runs,
                "states": c.states,
                "seconds": round(c.seconds, 3),
                "complete_through": c.complete,
                "exhausted": c.exhausted,
                "covered": str(c),
            }
            for c in covered
        ],
        "counterexamples": [
            {
                **RecordedCounterexample(
                    one.coverage.protocol,
                    one.coverage.small,
                    one.shortest.steps,
                    one.shortest.deviations,
                ).to_json(one.shortest),
                "file": None if one.file is None else str(one.file),
            }
            for one in found
        ],
    }


def _again(file: Path, as_json: bool) -> int:
    """Show the counterexample of a file; the exit code says whether it still breaks something."""
    try:
        recorded = RecordedCounterexample.from_json(file.read_text())
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error
    except UsageError as error:
        raise UsageError(f"{file}: {error}") from error
    [name] = one_of("protocol", recorded.protocol, PROTOCOLS)
    found = recorded.again(PROTOCOLS[name])
    if as_json:
        broken = None if found is None else recorded.to_json(found)
        kept = "yes" if found is None else "no"
        print_json({"version": JSON_VERSION, "kept": kept, "counterexample": broken})
    elif found is None:
        results().print("[bold green]kept[/]: these steps break nothing any more")
    else:
        _print_story(name, recorded.small, found)
    return KEPT if found is None else BROKEN
