"""`snapline list`: what there is to choose from, read from where it is defined."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table

from snapline.chaos.catalogue import GRAMMAR, where
from snapline.chaos.faults import parse
from snapline.cli.experiments.search_progress import minutes
from snapline.cli.terminal.console import JSON_VERSION, escape, messages, print_json, results
from snapline.cli.terminal.logs import CommandVerboseOption
from snapline.cli.terminal.options import JsonOption
from snapline.engine.options import INTERVAL_OF, OPTIONS, RunOption
from snapline.plugins import Catalogue
from snapline.protocols import PROTOCOLS
from snapline.rundir.spec import OWN
from snapline.systems.registry import OWN_SUMMARY, SYSTEMS
from snapline.workload import WORKLOADS

LIST_HELP = """Show what there is to choose from: protocols, workloads, faults, systems and more.

Each list has the names that the other commands take, with one line on what they mean. Protocols, \
workloads and systems of other installed packages are in it, too; docs/glossary.md explains the words. \
[cyan]figures[/] are the figures of a run with their definitions; they are shown only if asked for."""

LIST_EXAMPLES = """[bold]Examples[/bold]

Show all lists:
[cyan]snapline list[/cyan]

Show only the protocols, with what each of them promises:
[cyan]snapline list protocols[/cyan]

Show how faults are written:
[cyan]snapline list faults[/cyan]

Show every figure of a run with its definition; as JSON, with a JSON Schema of them:
[cyan]snapline list figures --json[/cyan]"""

Row = Mapping[str, Any]
SETTINGS = "settings"


class Kind(StrEnum):
    """The lists that can be asked for."""

    PROTOCOLS = "protocols"
    WORKLOADS = "workloads"
    FAULTS = "faults"
    SYSTEMS = "systems"
    OPTIONS = "options"
    FIGURES = "figures"
    EXPERIMENTS = "experiments"


def _protocols() -> list[Row]:
    return [
        {
            "name": protocol.name,
            "guarantees": [guarantee.value for guarantee in protocol.guarantees],
            "cycles": protocol.cycles,
            "summary": protocol.summary,
        }
        for protocol in PROTOCOLS.values()
    ]


def _workloads() -> list[Row]:
    return [
        {
            "name": workload.name,
            "cyclic": workload.cyclic,
            "summary": workload.summary,
            SETTINGS: [
                {"name": name, **asdict(setting)} for name, setting in workload.settings.items()
            ],
        }
        for workload in WORKLOADS.values()
    ]


def _systems() -> list[Row]:
    others = [
        {"name": name, "summary": entry.summary, "options": list(entry.options.values())}
        for name, entry in SYSTEMS.items()
    ]
    return [{"name": OWN, "summary": OWN_SUMMARY, "options": []}, *others]


def _faults() -> list[Row]:
    return [
        {"name": example, "summary": meaning, "where": where(parse(example)[0])}
        for example, meaning in GRAMMAR
    ]


def _options() -> list[Row]:
    """The options of a run, and which protocols heed each."""
    usual = [(option, option.write(option.default)) for option in OPTIONS.values()]
    return [
        {
            "name": option.name,
            "default": default,
            "protocols": _heeding(option),
            "summary": option.summary,
        }
        for option, default in (*usual, (INTERVAL_OF, "that of the run"))
    ]


def _figures() -> list[Row]:
    """The figures of a run. They are not chosen from, so only who asks for them gets this list."""
    from snapline.metrics.figures import Figures
    from snapline.metrics.json_form import listed

    return [{"name": path, "definition": definition} for path, definition in listed(Figures)]


def _figures_schema() -> Any:
    from snapline.metrics.figures import Figures
    from snapline.metrics.json_form import json_schema

    return json_schema(Figures)


def _heeding(option: RunOption) -> list[str]:
    names = [name for name, protocol in PROTOCOLS.items() if option.used_by(protocol)]
    return ["all"] if len(names) == len(PROTOCOLS) else names


def _experiments() -> list[Row]:
    """The figures and tables of papers, with about how long the short form of each takes by itself."""
    from snapline.experiments.papers.catalogue import PAPERS, read_shipped
    from snapline.experiments.papers.estimate import form_s

    return [
        {
            "name": figure.name,
            "paper": f"{paper.authors.partition(',')[0]} {paper.year}",
            "title": figure.title,
            "quick": f"about {minutes(form_s(figure.quick))}"
            if figure.quick and not figure.lacking
            else "not yet",
        }
        for paper in map(read_shipped, PAPERS)
        for figure in paper.figures.values()
    ]


LISTS: dict[Kind, Callable[[], list[Row]]] = {
    Kind.PROTOCOLS: _protocols,
    Kind.WORKLOADS: _workloads,
    Kind.FAULTS: _faults,
    Kind.SYSTEMS: _systems,
    Kind.OPTIONS: _options,
    Kind.FIGURES: _figures,
    Kind.EXPERIMENTS: _experiments,
}


_CATALOGUES: Mapping[Kind, Catalogue[Any]] = {
    Kind.PROTOCOLS: PROTOCOLS,
    Kind.WORKLOADS: WORKLOADS,
    Kind.SYSTEMS: SYSTEMS,
}


def print_catalogue(kind: Kind | None, as_json: bool) -> None:
    """Print one list, or all of them, and messages about plugins that cannot be used."""
    kinds = [kind] if kind else [each for each in LISTS if each is not Kind.FIGURES]
    rows = {str(each): LISTS[each]() for each in kinds}
    for each in kinds:
        for problem in _CATALOGUES[each].problems() if each in _CATALOGUES else ():
            messages().print(escape(problem), soft_wrap=True)
    if as_json:
        schema = {"schema": _figures_schema()} if kind is Kind.FIGURES else {}
        print_json({"version": JSON_VERSION, **rows, **schema})
        return
    for title, entries in rows.items():
        plain = [{k: v for k, v in row.items() if k != SETTINGS} for row in entries]
        results().print(_table(title, plain))
        if settings := _settings(entries):
            results().print(_table("settings of workloads (--set NAME=VALUE)", settings))


def _settings(workloads: Sequence[Row]) -> list[Row]:
    """The settings of all workloads, each once, with the workloads that have it."""
    rows: dict[str, dict[str, Any]] = {}
    for workload in workloads:
        for name, setting in (
            WORKLOADS[workload["name"]].settings.items() if SETTINGS in workload else ()
        ):
            row = rows.setdefault(name, {"name": name, "workloads": []})
            row["workloads"].append(workload["name"])
            row["full"], row["small"] = setting.write(setting.full), setting.write(setting.small)
            row["summary"] = setting.summary
    return list(rows.values())


def _table(title: str, rows: Sequence[Row]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="bold")
    for column in rows[0]:
        table.add_column(column, style="cyan" if column == "name" else "")
    for row in rows:
        table.add_row(*(escape(_shown(value)) for value in row.values()))
    return table


def _shown(value: object) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(value)
        case _:
            return str(value)


def list_command(
    kind: Annotated[
        Kind | None, typer.Argument(help="The list to show. Without it, all but figures are shown.")
    ] = None,
    as_json: JsonOption = False,
    verbose: CommandVerboseOption = 0,
) -> None:
    """`snapline list`."""
    print_catalogue(kind, as_json)
