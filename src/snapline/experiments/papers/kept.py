"""Results that are kept for good, beside the code: `results/PAPER/FORM.json`, a file for each form.

A file has what a verdict is read from, and what a reader must know to trust it: the settings of the form as
they were, the machine and the code, the capacities that were found, and every run with its verdict and all
its figures. The run directories are not kept. docs/findings.md is made of these files alone.

A cell of a sweep has a key that changes with the code; a kept result has none. It counts for a form as long
as the form asks for the same runs. Files are written in one way only, so equal results are equal bytes.
"""

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path
from typing import Any, Final

from snapline.arguments import named
from snapline.errors import UsageError
from snapline.experiments.papers.catalogue import (
    CAPACITY,
    PAPERS,
    Paper,
    PaperForm,
    read_shipped,
)
from snapline.experiments.sweep_directory import CAPACITIES, FILE, SweepDirectory
from snapline.experiments.sweep_file import SweepCell
from snapline.rundir.spec import Spec
from snapline.storage.files.places import write_whole

VERSION: Final = 1
MARK: Final = "snapline_results"
RESULTS: Final = "results"
"""Where they are kept, below the directory of the project."""

_OF_A_RUN: Final = (
    *("spec", "run", "kept", "because", "metrics", "foreign", "attempt", "begun_s", "elapsed_s"),
    *("simulated", "marks"),
)
"""What is kept of the result of a run as it is."""


@dataclass(frozen=True, slots=True)
class KeptForm:
    """The results of one form, as they are kept."""

    paper: str
    form: str
    settings: Mapping[str, Any]  # of the form, when its runs were made
    planned: int  # how many runs the form asks for
    environment: Mapping[str, Any]  # what is the same for all runs; a run has the rest
    capacities: Sequence[Mapping[str, Any]]
    runs: Sequence[Mapping[str, Any]]

    @property
    def days(self) -> tuple[str, str]:
        """The days on which the first and the last of its runs were made."""
        found = [datetime.fromtimestamp(run["begun_s"], UTC) for run in self.runs]
        return f"{min(found):%Y-%m-%d}", f"{max(found):%Y-%m-%d}"

    def fits(self, form: PaperForm) -> bool:
        """Whether the form still asks for these runs."""
        return _line(self.settings) == _line(form.content)


def keep(paper: Paper, directory: SweepDirectory, to: Path) -> list[KeptForm]:
    """Keep the results of all forms of a paper that a sweep has measured, instead of what was kept of them.

    Raises UsageError if the directory is that of no sweep, or has no result of the paper.
    """
    results = directory.results()
    found = [_kept(paper, form, directory, results) for form in forms_of(paper).values()]
    whole = [each for each in found if each.runs]
    if not whole:
        raise UsageError(
            f"{directory.path} has no result of an experiment of {paper.name} as it is now: "
            f"'snapline sweep {paper.name}' makes them"
        )
    for each in whole:
        path = to / each.paper / f"{each.form}.json"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, written(each))
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror}") from error
    return whole


def paper_of_sweep(path: Path) -> Paper:
    """The shipped paper whose figures a sweep has measured, by its title. Raises UsageError."""
    try:
        said = tomllib.loads((path / FILE).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path} is no sweep: there is no {FILE} in it") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path / FILE} is no TOML file: {error}") from error
    title = named(said.get("paper", {}), "[paper]").get("title")
    for name in PAPERS:
        if read_shipped(name).title == title:
            return read_shipped(name)
    raise UsageError(f"{path} is no sweep of {' or '.join(PAPERS)}: only their results are kept")


def forms_of(paper: Paper) -> dict[str, PaperForm]:
    """All forms from which figures of a paper can be read in this version."""
    figures = [each for each in paper.figures.values() if not each.lacking]
    found = [form for each in figures for form in (each.quick, each.full) if form is not None]
    return {form.name: form for form in found}


def read_kept(results: Path, paper: str, form: str) -> KeptForm | None:
    """What is kept of a form; None if nothing is. Raises UsageError if it cannot be read."""
    path = results / paper / f"{form}.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{path} is no file of results: it is not JSON ({error})") from error
    if not isinstance(content, dict) or MARK not in content:
        raise UsageError(f"{path} is no file of results: 'snapline findings SWEEP' makes them")
    if content.pop(MARK) != VERSION:
        raise UsageError(f"{path} is of another version; this Snapline reads version {VERSION}")
    try:
        kept = KeptForm(**content)
    except TypeError as error:
        raise UsageError(f"{path} is no whole file of results: {error}") from error
    if (kept.paper, kept.form) != (paper, form):
        raise UsageError(f"{path} has the results of {kept.paper}, {kept.form}: put it there")
    return kept


def written(kept: KeptForm) -> str:
    """The text of a file of results: a line for each run, so that a change can be read."""
    plain = ("paper", "form", "settings", "planned", "environment")
    lines = [f'"{MARK}": {VERSION}', *(f'"{n}": {_line(getattr(kept, n))}' for n in plain)]
    for name in ("capacities", "runs"):
        inner = ",\n  ".join(map(_line, getattr(kept, name)))
        lines.append(f'"{name}": [\n  {inner}\n ]' if inner else f'"{name}": []')
    return "{\n " + ",\n ".join(lines) + "\n}\n"


def _kept(
    paper: Paper,
    form: PaperForm,
    directory: SweepDirectory,
    results: Sequence[Mapping[str, Any]],
) -> KeptForm:
    """The results of one form, of the code that has most of them; of the newest code if several have."""
    cells = form.sweep().cells
    by_code: dict[str, list[Mapping[str, Any]]] = {}
    for result in results:
        by_code.setdefault(str(result["environment"]["code"]), []).append(result)
    found = {code: _matched(cells, mine, code) for code, mine in by_code.items()}
    code = max(found, key=lambda code: (len(found[code]), _newest(found[code])), default="")
    runs = [_of_cell(cell, result) for cell, result in found.get(code, [])]
    same = reduce(_common, [run["environment"] for run in runs]) if runs else {}
    for run in runs:
        run["environment"] = {k: v for k, v in run["environment"].items() if k not in same}
    searched = {cell.column.capacity_key(code): None for cell in cells if cell.column.share}
    capacities = [directory.read(key, CAPACITIES) for key in searched]
    return KeptForm(
        paper.name,
        form.name,
        form.content,
        len(cells),
        same,
        [_of_search(each) for each in capacities if each is not None],
        runs,
    )


def _matched(
    cells: Sequence[SweepCell], results: Sequence[Mapping[str, Any]], code: str
) -> list[tuple[SweepCell, Mapping[str, Any]]]:
    """The result of each cell that has one: by its key, or by what was run if keys have changed."""
    by_key = {result["key"]: result for result in results}
    by_run = {_run_of_result(result): result for result in results}
    pairs = [(c, by_key.get(c.key(code)) or by_run.get(_run_of_cell(c))) for c in cells]
    return [(cell, result) for cell, result in pairs if result is not None]


def _newest(found: Sequence[tuple[SweepCell, Mapping[str, Any]]]) -> float:
    return max((float(result["begun_s"]) for _, result in found), default=0.0)


def _run_of_cell(cell: SweepCell) -> str:
    column, said = cell.column, cell.spec.said()
    share = None
    if column.share is not None:
        share = column.varied.get("rate", "")
        said["rate"] = None
    return _line([_telling(said), share, column.launcher, column.again, cell.turn])


def _run_of_result(result: Mapping[str, Any]) -> str:
    """The same of a result; whether its rate was a share shows only where shares varied."""
    said, share = dict(result["spec"]), result["varied"].get("rate")
    if isinstance(share, str) and "capacity" in share:
        said["rate"] = None
    else:
        share = None
    return _line([_telling(said), share, result["launcher"], result["again"], result["turn"]])


def _telling(said: Mapping[str, Any]) -> dict[str, Any]:
    """What of a run is not as everybody has it: a setting that is new since then changes nothing."""
    usual = _plain(Spec(str(said["flow"])).said())
    return {name: value for name, value in _plain(said).items() if usual.get(name) != value}


def _of_cell(cell: SweepCell, result: Mapping[str, Any]) -> dict[str, Any]:
    column = cell.column
    run = {name: result[name] for name in _OF_A_RUN if name in result}
    if column.share is not None:
        capacity = round(result["spec"]["rate"] / column.share)
        run["metrics"] = {**result["metrics"], CAPACITY: capacity}
    said = {"turn": cell.turn, "again": column.again, "varied": dict(column.varied)}
    return {**said, **run, "environment": dict(result["environment"])}


def _of_search(capacity: Mapping[str, Any]) -> dict[str, Any]:
    left_out = ("version", "key", "environment")
    return {name: value for name, value in capacity.items() if name not in left_out}


def _common(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """What two environments have in common."""
    return {name: value for name, value in one.items() if name in other and other[name] == value}


def _plain(content: Any) -> Any:
    """A value as JSON gives it back: lists for tuples, and so on."""
    return json.loads(_line(content))


def _line(content: Any) -> str:
    return json.dumps(content, sort_keys=True, ensure_ascii=False, default=str)
