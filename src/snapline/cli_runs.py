"""`snapline runs`: what runs have left."""

import json
import shutil
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from snapline.cli_tables import messages, print_json, results
from snapline.errors import UsageError


def manage_runs(action: str, name: str | None, runs: Path, as_json: bool) -> int:
    """List, show or remove what runs left."""
    from snapline.runtime.rundir import RunDirectory

    match action:
        case "list":
            found = sorted(runs.glob("*/run.json"), key=lambda file: file.stat().st_mtime)
            _print_runs([RunDirectory(file.parent) for file in found], as_json)
        case "show":
            directory = RunDirectory.open(runs, name or "last")
            print_json({"run": directory.name, **directory.spec(), **_result(directory.path)})
        case "rm":
            if name is None:
                raise UsageError("say which run to remove: 'snapline runs rm NAME'")
            directory = RunDirectory.open(runs, name)
            shutil.rmtree(directory.path)
            messages().print(f"removed {directory.name}")
        case _:
            raise UsageError(f"'snapline runs' knows list, show and rm, not {action!r}")
    return 0


def _result(path: Path) -> dict[str, Any]:
    file = path / "result.json"
    result: dict[str, Any] = json.loads(file.read_text()) if file.is_file() else {"kept": None}
    return result


def _print_runs(directories: list[Any], as_json: bool) -> None:
    rows = [(d.name, d.spec(), _result(d.path)) for d in directories]
    if as_json:
        print_json({"runs": [{"run": name, **spec, **result} for name, spec, result in rows]})
        return
    if not rows:
        messages().print("no runs yet: 'snapline run q12' makes one")
        return
    table = Table("run", "flow", "protocol", "faults", "kept", box=None)
    for name, spec, result in rows:
        kept = result["kept"] or "not finished"
        words = [escape(str(spec.get(key, "?"))) for key in ("flow", "protocol", "faults")]
        table.add_row(name, *words, kept)
    results().print(table)
