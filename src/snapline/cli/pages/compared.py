"""Comparisons as pages show them: of two runs, of columns of runs, and of the columns of a sweep."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from snapline.cli.experiments.compare import certainty, differing_settings, measured_columns
from snapline.cli.experiments.forest_rows import forest_row
from snapline.errors import SnaplineError, UsageError
from snapline.report.page.comparison import ComparedColumn, ComparisonPage
from snapline.report.run.reported import ReportedRun
from snapline.wording import plural

if TYPE_CHECKING:
    from snapline.experiments.comparison import Compared
    from snapline.experiments.sweep_directory import SweepDirectory


def compared_with(runs: Path, name: str, other: str) -> ComparisonPage:
    """What is compared: `name` against `other`, each as `snapline compare` takes it. Raises UsageError."""
    from snapline.experiments.comparison import compare

    left, right, noise = measured_columns(runs, other, name)
    found = list(compare([e.metrics for e in left], [e.metrics for e in right], floors=noise))
    if not found:
        raise UsageError("these runs have no figure in common that could be compared")
    doubtful = [each.name for each in (*left, *right) if each.kept != "yes"]
    first, second = _name(other), _name(name)
    return ComparisonPage(
        first,
        [compared_column(second, found, noise)],
        f"{plural(found[0].ratio.pairs, 'pair')} of runs; {certainty(found)}.",
        differing_settings(left, right),
        _reported(runs, [right[0].name, left[0].name], name),
        [f"{each} is not proved right: its figures may be of less work." for each in doubtful],
    )


def _name(text: str) -> str:
    """How a page calls what was given: the first of several runs, or the column of a sweep."""
    first, _, more = text.partition(",")
    return f"{first} and its repetitions" if more else first


def _reported(runs: Path, names: Sequence[str], given: str) -> list[ReportedRun]:
    """The runs whose directories are there; without them there are figures, but no charts over time."""
    from snapline.rundir.directory import RunDirectory
    from snapline.runs.finished import reported

    sweep = Path(given.partition(":")[0])
    place = sweep / "runs" if (sweep / "runs").is_dir() else runs
    found = []
    for name in names:
        try:
            found.append(reported(RunDirectory.open(place, name)))
        except SnaplineError:
            return []
    return found


def compared_column(
    name: str, found: "Sequence[Compared]", noise: "dict[str, float]"
) -> ComparedColumn:
    """A column against the first one."""
    rows = [forest_row(each.figure.name, each, noise.get(each.figure.name)) for each in found]
    values = [(each.first, each.second, each.figure.unit) for each in found]
    return ComparedColumn(name, rows, values)


def of_sweep(directory: "SweepDirectory") -> ComparisonPage:
    """All columns of a sweep against its first one. Raises UsageError if there is nothing to compare."""
    from snapline.experiments.sweep_directory import measuring_code
    from snapline.experiments.sweep_file import read_sweep
    from snapline.experiments.sweep_table import against_first, floors

    sweep = read_sweep(directory.path / "sweep.toml")
    columns = [column for column in sweep.columns if not column.again]
    kept = directory.results()
    code = measuring_code(kept)
    results = [each for each in kept if each["environment"].get("code") == code]
    noise = floors(results)
    found = against_first(results, [column.varied for column in columns])
    compared = [
        compared_column(column.label, rows, noise)
        for column, (_, rows) in zip(columns[1:], found, strict=True)
        if rows
    ]
    if not compared:
        raise UsageError(f"{directory.path} has no two columns that were measured in the same turn")
    turns = len({result["turn"] for result in results})
    said = f"{plural(len(results), 'run')} in {plural(turns, 'turn')}; six turns are needed to be sure."
    wrong = [result["run"] for result in results if result["kept"] != "yes"]
    notes = [f"{name} is not proved right: its figures may be of less work." for name in wrong[:5]]
    return ComparisonPage(columns[0].label, compared, said, notes=notes)
