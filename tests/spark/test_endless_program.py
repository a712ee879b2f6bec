"""The program that measures a job without an end, for five minutes: what it counts stays within bounds.

The bounds follow from what is kept, not from the speed of the machine: a figure that grows with the run, or
with every kill, passes them.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

HOME = Path(__file__).parents[2]
JOURNAL_KB = 200
TASKS = 4  # q12 without chains, on two slots
RETAIN_S = 40
# A line a second at most, kept for that long and a quarter of it, and not yet gathered or deleted ones.
MANIFESTS = 2 * RETAIN_S
# Each life of a sink task, which a kill may end, begins a file after an eighth of that time at the latest.
FILES = 2 * 2 * (8 + RETAIN_S // 20 + 4)
LINES_KEPT = 32  # by the figures; see metrics/checkpointing/account.py


def figures(page: str) -> dict[str, tuple[float, float]]:
    """Every figure of the page: when it was first taken, and at the end."""
    rows = re.findall(r"^\| ([^|]+?) \| ([\d,.]+) \| [\d,.]+ \| ([\d,.]+) \|", page, re.MULTILINE)
    return {name: (_number(first), _number(last)) for name, first, last in rows}


def _number(text: str) -> float:
    return float(text.replace(",", ""))


@pytest.mark.slow
def test_a_job_without_an_end_stays_within_bounds(tmp_path):
    page = tmp_path / "endless.md"
    asked = ["--minutes", "5", "--kill-s", "20", "--every-s", "5", "--to", str(page)]
    program = [sys.executable, "-m", "benchmarks.endurance.endless", *asked]
    program += ["--journal-mb", str(JOURNAL_KB / 1e3), "--retain", f"{RETAIN_S}s"]
    subprocess.run(program, cwd=HOME, check=True)
    found = figures(page.read_text())
    assert "right" in page.read_text()
    assert found["journal: kB"][1] <= 2 * JOURNAL_KB
    assert found["store/snapshot: files"][1] <= 40 * TASKS
    assert found["driver: checkpoints registered"][1] <= 40 * TASKS
    assert found["driver: checkpoints in figures"][1] <= (LINES_KEPT + 8) * TASKS
    assert " 0 rows deleted" not in page.read_text()
    assert found["output/manifests: files"][1] <= MANIFESTS
    assert found["output: files"][1] <= FILES
    for name in ("driver: descriptors", "slots: descriptors", "driver: threads"):
        first, last = found[name]
        assert last <= first + 20
