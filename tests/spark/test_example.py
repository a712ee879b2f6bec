"""The example as a user runs it: as a notebook, and as a script on a cluster that loses an executor.

The notebook and the script are the same text, which a test compares.
"""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from spark_slots import eventually, lives, parent_of
from standalone import HOME, cluster, environment

from snapline.runtime.driver.inject import executor_of

pytestmark = pytest.mark.spark

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
SCRIPT, NOTEBOOK = EXAMPLES / "exactly_once.py", EXAMPLES / "exactly_once.ipynb"
COUNTED = "40000 pairs, 40000 in the files, 0 lost, 0 too many"


def cells_of(script: Path) -> list[str]:
    """The cells of a script: its docstring, and what stands below each `# %%`, with its title."""
    _, words, code = script.read_text().split('"""', 2)
    cells = [cell.partition("\n") for cell in code.strip().split("# %% ")[1:]]
    return [words.strip(), *(f"# {title}\n{body.strip()}" for title, _, body in cells)]


def notebook_of(cells: list[str]) -> dict[str, object]:
    """A notebook with these cells, the first of them in words, and without any output."""
    shared = {"metadata": {}}
    words, *code = [cell.splitlines(keepends=True) for cell in cells]
    first = {"cell_type": "markdown", "id": "cell-0", "source": words, **shared}
    others = [
        {
            "cell_type": "code",
            "execution_count": None,
            "id": f"cell-{number}",
            "outputs": [],
            "source": source,
            **shared,
        }
        for number, source in enumerate(code, 1)
    ]
    return {"cells": [first, *others], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def test_the_notebook_is_the_script():
    """To write it again: `NOTEBOOK.write_text(json.dumps(notebook_of(cells_of(SCRIPT)), indent=1))`."""
    assert json.loads(NOTEBOOK.read_text()) == notebook_of(cells_of(SCRIPT))
    code = [
        cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"
    ]
    assert sum(len(cell["source"]) for cell in code) < 60, "one screen"


RUN_CELLS = """
import json, sys
for cell in json.load(open(sys.argv[1]))["cells"]:
    if cell["cell_type"] == "code":
        exec("".join(cell["source"]), globals())
"""


def test_the_cells_of_the_notebook_run_and_every_pair_is_in_the_files_exactly_once(tmp_path):
    command = [sys.executable, "-c", RUN_CELLS, str(NOTEBOOK)]
    ran = subprocess.run(
        command, env=environment(), cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    verdict, counted = ran.stdout.splitlines()
    assert verdict.startswith("Verdict(kept='yes'"), verdict
    assert counted == COUNTED
    assert "SettingsHurt" not in ran.stderr


def slots_of(runs: Path) -> list[int]:
    """The processes that are slots of a run: they hold their journals open."""
    found = []
    for file in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):  # it has ended meanwhile
            if file.readlink().match(f"{runs}/*/journal/slot-*"):
                found.append(int(file.parts[2]))
    return found


@pytest.mark.slow
def test_the_script_on_a_cluster_that_loses_an_executor_has_every_pair_exactly_once(tmp_path):
    place, work = tmp_path / "cluster", tmp_path / "user"
    place.mkdir()
    work.mkdir()
    with cluster(place) as (master, workers):
        command = [str(HOME / "bin" / "spark-submit"), "--master", master, str(SCRIPT)]
        with (work / "told").open("w") as out, (work / "complaints").open("w") as err:
            driver = subprocess.Popen(
                command, env=environment(MASTER=master), cwd=work, stdout=out, stderr=err
            )
        try:
            lines = "*/output/manifests/2.obj"
            over = lambda: driver.poll() is not None  # noqa: E731
            eventually(lambda: over() or list((work / "runs").glob(lines)), "the second line")
            eventually(lambda: over() or slots_of(work / "runs"), "a slot")
            victim = executor_of(slots_of(work / "runs")[0])
            assert parent_of(victim) in workers
            os.kill(victim, signal.SIGKILL)
            eventually(lambda: not lives(victim), "the end of an executor")
            assert driver.wait(300) == 0, (work / "complaints").read_text()
        finally:
            driver.kill()
            driver.wait()
    verdict, counted = (work / "told").read_text().splitlines()
    assert verdict.startswith("Verdict(kept='yes'"), verdict
    assert counted == COUNTED
