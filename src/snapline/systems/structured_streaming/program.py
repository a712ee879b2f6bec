"""A driver program as its supervisor sees it: started with its plan, and read by what it reports.

DIR/plan.json    what the program is to do; it is started with it as often as it dies
DIR/driver.log   what it printed
DIR/reports/     what it reports (`driver`)
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from snapline.systems.harness.processes import Group, python
from snapline.systems.structured_streaming.driver import DRIVER, FAILED

PLAN = "plan.json"
LOG = "driver.log"
REPORTS = "reports"


def launch(module: str, directory: Path, environment: Mapping[str, str] | None = None) -> Group:
    """Start the program that a module is, with the plan that lies in the directory."""
    for file in (DRIVER, FAILED):
        (directory / REPORTS / file).unlink(missing_ok=True)
    return Group(python(module, str(directory / PLAN)), directory / LOG, environment)


def reported(directory: Path) -> dict[str, Any] | None:
    """What the program said of its processes; None before its query runs."""
    try:
        said: dict[str, Any] = json.loads((directory / REPORTS / DRIVER).read_text())
    except FileNotFoundError:
        return None
    return said


def last_words(directory: Path) -> str:
    """Why the program ended, in one line."""
    for file, line in ((directory / REPORTS / FAILED, 0), (directory / LOG, -1)):
        if file.exists() and (lines := file.read_text(errors="replace").strip().splitlines()):
            return lines[line]
    return "it said nothing"
