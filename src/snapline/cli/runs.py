"""`snapline runs`: lists, shows and removes runs. Rows are read without Spark, a few at a time."""

import csv
import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from snapline.batch import Batch, Schema, concat
from snapline.cli.pages.run_table import ListedRun, listed_run, print_runs, remove_runs
from snapline.cli.terminal.console import (
    JSON_VERSION,
    escape,
    messages,
    print_csv,
    print_json,
    results,
)
from snapline.cli.terminal.options import local_path
from snapline.cli.terminal.run_page import print_page
from snapline.errors import UsageError
from snapline.rundir.spec import OWN, STORED
from snapline.wording import plural

if TYPE_CHECKING:
    from snapline.rundir.directory import RunDirectory

HELP = """List the runs that are stored, show one of them or its output, or remove one.

Every [cyan]snapline run[/cyan] leaves a directory with all that belongs to it. Only output that is \
published is shown, unless you ask for more; docs/glossary.md explains the words. Spark reads the same \
with spark.read.format("snapline").load("runs/NAME"), also as a stream: docs/output.md."""

EXAMPLES = """[bold]Examples[/bold]

List all runs:
[cyan]snapline runs[/cyan]

Show what the last run was asked to do, and how it went:
[cyan]snapline runs show last[/cyan]

Show the first five rows of its output:
[cyan]snapline runs output last --limit 5[/cyan]

Write all of its output into a file:
[cyan]snapline runs output last --to counts.parquet[/cyan]

Remove the last run, or all that were last written to more than a week ago:
[cyan]snapline runs rm last[/cyan]
[cyan]snapline runs rm --older 7d[/cyan]"""

GROUP_ROWS = 1 << 16
FORMATS = ("table", "csv", "json")

ActionArgument = Annotated[
    str,
    typer.Argument(
        metavar="list|show|output|rm",
        help="[cyan]list[/] shows all runs, [cyan]show[/] one of them, [cyan]output[/] its rows, and "
        "[cyan]rm[/] removes it.",
    ),
]
NameArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="RUN|last",
        help="The name of the run, or [cyan]last[/] for the newest. [cyan]rm[/] needs it; [cyan]show[/] "
        "and [cyan]output[/] take the newest without it.",
    ),
]
SinkOption = Annotated[
    str | None,
    typer.Option(
        metavar="S",
        help="Of [cyan]output[/]: the sink whose rows are shown. It is needed if the run has several.",
    ),
]
UncommittedOption = Annotated[
    bool,
    typer.Option(
        "--uncommitted",
        metavar=" ",
        help="Of [cyan]output[/]: show all rows that were written, published or not.",
    ),
]
LimitOption = Annotated[
    int,
    typer.Option(
        min=0,
        metavar="N",
        help="Of [cyan]output[/]: show at most this many rows.",
    ),
]
FormatOption = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="table|csv|json",
        help="Of [cyan]output[/]: the form in which rows are printed; [cyan]json[/] is one JSON object a "
        "line.",
    ),
]
ToOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        callback=local_path,
        help="Of [cyan]output[/]: write all rows into this new file, which ends in .parquet or .csv, and "
        "print none.",
    ),
]


OlderOption = Annotated[
    str | None,
    typer.Option(
        metavar="AGE",
        help="Of [cyan]rm[/]: remove all runs that nothing was written to for this long, as 7d or 12h.",
    ),
]

ACTIONS = ("list", "show", "output", "rm")
_OF_OUTPUT = ("sink", "uncommitted", "limit", "form", "to")


def idle(action: str, to: Path | None, as_json: bool) -> dict[str, str]:
    """The parameters that have no effect on an action, and why."""
    if action not in ACTIONS:
        return {}  # it is refused as a whole
    if action == "output":
        older = {"older": "is for 'snapline runs rm', not for 'runs output'"}
        if to is not None:
            why = (
                "is for rows that are printed: --to writes all of them into a file, so leave it out"
            )
            return {**dict.fromkeys(("limit", "form", "as_json"), why), **older}
        if as_json:
            return {"form": "and --json exclude each other: leave one of them out", **older}
        return older
    found = dict.fromkeys(_OF_OUTPUT, f"is for 'snapline runs output', not for 'runs {action}'")
    if action != "rm":
        found["older"] = f"is for 'snapline runs rm', not for 'runs {action}'"
    if action == "list":
        found["name"] = (
            "is too much: 'snapline runs' lists all runs, 'snapline runs show RUN' shows one"
        )
    if action == "rm":
        found["as_json"] = (
            "has no effect on 'snapline runs rm', which prints no result: leave it out"
        )
    return found


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which output `snapline runs output` is to show, how, and where."""

    sink: str | None = None
    uncommitted: bool = False
    limit: int = 20
    form: str = "table"
    to: Path | None = None
    older: str | None = None  # of `rm`: how old runs are that are to go


def manage_runs(action: str, name: str | None, runs: Path, wanted: Wanted, *, as_json: bool) -> int:
    """List the runs, show or remove one, or show its output; return the exit code."""
    try:
        _act(action, name, runs, wanted, as_json)
    except RecursionError as error:
        raise UsageError(f"a JSON file of a run in {runs} is nested too deeply") from error
    return 0


def _act(action: str, name: str | None, runs: Path, wanted: Wanted, as_json: bool) -> None:
    from snapline.rundir.directory import RunDirectory, run_directories

    match action:
        case "list":
            _print_runs([RunDirectory(path) for path in run_directories(runs)], as_json)
        case "show":
            _show(RunDirectory.open(runs, name or "last"), as_json)
        case "output":
            _output(RunDirectory.open(runs, name or "last"), wanted, as_json)
        case "rm":
            remove_runs(runs, name, wanted.older)
        case _:
            known = " and ".join((", ".join(ACTIONS[:-1]), ACTIONS[-1]))
            raise UsageError(f"'snapline runs' knows {known}, not {action!r}")


# list and show


def _result(directory: "RunDirectory") -> dict[str, Any]:
    return directory.result() or {"kept": None}


def _unfinished(directory: "RunDirectory", spec: dict[str, Any]) -> str:
    """The text that stands in place of a verdict for a run that is not over."""
    if not spec.get("protocol"):
        return "given up"
    again = "'snapline run --resume' goes on with it"
    return f"{why}; {again}" if (why := directory.why_not_over()) else again


def _listed(directory: "RunDirectory") -> ListedRun | None:
    """What the list says of a run; None, with a message, if it cannot be read."""
    from snapline.rundir.directory import check_contained

    try:
        check_contained(directory.path.resolve())
        return listed_run(directory, _result(directory))
    except UsageError as error:
        messages().print(f"{escape(directory.name)} is left out: {escape(error)}", soft_wrap=True)
        return None


def _print_runs(directories: list["RunDirectory"], as_json: bool) -> None:
    rows = [row for d in directories if (row := _listed(d)) is not None]
    if as_json:
        print_json({"version": JSON_VERSION, "runs": [_in_list(row) for row in rows]})
    elif rows:
        print_runs(rows)
    else:
        messages().print("no runs yet: 'snapline run q12' makes one")


def _in_list(run: ListedRun) -> dict[str, Any]:
    about = {"size_bytes": run.bytes, "written_s": round(run.written_s, 3)}
    return {**_document(run.name, dict(run.spec), dict(run.result)), **about}


def _document(name: str, spec: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    """A run as JSON. Its two files have versions, and a digest called `run`, of their own."""
    head = {"version": JSON_VERSION, "run": name}
    return {**head, **spec, **result, **head}


def _show(directory: "RunDirectory", as_json: bool) -> None:
    spec, result = directory.spec(), _result(directory)
    if as_json:
        print_json(_document(directory.name, spec, result))
        return
    because = result.get("because") or _unfinished(directory, spec)
    print_page(directory.name, str(directory.path), spec, {**result, "because": because})


# output


def _output(directory: "RunDirectory", wanted: Wanted, as_json: bool) -> None:
    from snapline.rundir.output_rows import public_view, sink_named, sink_schema, walk_output
    from snapline.storage.api import View

    form = "json" if as_json else wanted.form
    if form not in FORMATS:
        raise UsageError(f"--format takes {', '.join(FORMATS)}, not {form!r}")
    if directory.spec().get("system", OWN) != OWN:
        _output_of_system(directory, wanted, form)
        return
    sink = sink_named(directory, wanted.sink, "--sink")
    # Where no line is ever committed, output is public as it is written.
    protocol = STORED["protocol"](directory.spec().get("protocol"), "the protocol in run.json")
    view: View = "uncommitted" if wanted.uncommitted else public_view(protocol)
    batches = walk_output(directory, sink, view)
    _tell_rows(batches, sink_schema(directory, sink), sink, wanted, form)


def _output_of_system(directory: "RunDirectory", wanted: Wanted, form: str) -> None:
    from snapline.judge.tables import saved_output

    if wanted.sink is not None or wanted.uncommitted:
        raise UsageError(
            "--sink and --uncommitted are for runs of Snapline; what another system has written and not "
            f"committed is in {directory.path / 'system'}"
        )
    schema, batches = saved_output(directory.path)
    _tell_rows(batches, schema, "the sink", wanted, form)


def _tell_rows(
    batches: Iterable[Batch], schema: Schema | None, sink: str, wanted: Wanted, form: str
) -> None:
    if schema is None:
        messages().print(f"{escape(sink)} has no rows")
        return
    if wanted.to is not None:
        rows = _export(batches, schema, wanted.to)
        messages().print(
            f"{plural(rows, 'row')} of {escape(sink)} written to {escape(str(wanted.to))}"
        )
        return
    _print_rows(list(islice(_rows(batches), wanted.limit + 1)), schema, wanted.limit, form)


def _rows(batches: Iterable[Batch]) -> Iterator[tuple[Any, ...]]:
    for batch in batches:
        yield from batch.rows()


def _print_rows(rows: list[tuple[Any, ...]], schema: Schema, limit: int, form: str) -> None:
    more = len(rows) > limit
    rows = rows[:limit]
    match form:
        case "json":
            for row in rows:
                print_json(dict(zip(schema, map(_json, row), strict=True)), indent=None)
        case "csv":
            print_csv([tuple(schema), *([_text(value) for value in row] for row in rows)])
        case _:
            table = Table(*(escape(name) for name in schema), box=None)
            for row in rows:
                table.add_row(*(escape(_text(value)) for value in row))
            results().print(table)
    if more:
        messages().print(
            f"the first {plural(limit, 'row')}; more with --limit, all of them with --to FILE"
        )


def _json(value: Any) -> Any:
    """A value as JSON holds it: bytes in hexadecimal."""
    return value.hex() if isinstance(value, bytes) else value


def _text(value: Any) -> Any:
    """A value as text formats hold it: bytes in hexadecimal, lists in brackets."""
    return json.dumps(value) if isinstance(value, list) else _json(value)


def _export(batches: Iterable[Batch], schema: Schema, to: Path) -> int:
    """Write all rows to a new file, which appears only when it is complete; return how many rows."""
    if to.suffix not in (".parquet", ".csv"):
        raise UsageError(f"--to takes a file that ends in .parquet or .csv, not {to}")
    if to.exists():
        raise UsageError(f"{to} exists: name another file, or remove it first")
    draft = to.with_name(f".{to.name}.draft")
    try:
        write = _write_parquet if to.suffix == ".parquet" else _write_csv
        rows = write(batches, schema, draft)
        draft.rename(to)
    except OSError as error:
        raise UsageError(f"cannot write {to}: {error.strerror}") from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
    return rows


def _write_parquet(batches: Iterable[Batch], schema: Schema, path: Path) -> int:
    from pyarrow import parquet

    from snapline.storage.parquet.arrow import arrow_schema, to_arrow

    count = 0
    with path.open("wb") as file, parquet.ParquetWriter(file, arrow_schema(schema)) as writer:
        for batch in _gathered(batches):
            writer.write_batch(to_arrow(batch))
            count += len(batch)
    return count


def _gathered(batches: Iterable[Batch]) -> Iterator[Batch]:
    """The same rows in batches of at least `GROUP_ROWS`, each of which becomes a Parquet row group."""
    held: list[Batch] = []
    for batch in batches:
        held.append(batch)
        if sum(map(len, held)) >= GROUP_ROWS:
            yield concat(held)
            held = []
    if held:
        yield concat(held)


def _write_csv(batches: Iterable[Batch], schema: Schema, path: Path) -> int:
    count = 0
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(schema)
        for row in _rows(batches):
            writer.writerow([_text(value) for value in row])
            count += 1
    return count
