"""The examples as a user runs them: notebooks in a kernel, a script on a cluster that loses an executor.

The notebook and the script of the one are the same text, which a test compares.
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
RUN_NOTEBOOK = EXAMPLES.parent / "tests" / "support" / "run_notebook.py"
BREAK_IT = EXAMPLES / "break_it.ipynb"
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


def cells_run(notebook: Path, place: Path):
    """What each code cell of a notebook has put out, in a kernel of its own."""
    command = [sys.executable, str(RUN_NOTEBOOK), str(notebook)]
    found = subprocess.run(
        command, env=environment(), cwd=place, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)[notebook.name]


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    """What the cells of the notebook that breaks a run have put out, and where it ran."""
    place = tmp_path_factory.mktemp("notebooks")
    return cells_run(BREAK_IT, place), place


def printed(cell, stream="stdout"):
    return "".join(o["text"] for o in cell if o["kind"] == "stream" and o["name"] == stream)


def cards(cell):
    """The cards that a cell has shown, one after the other: as text, and as HTML."""
    shown = [o for o in cell if o["kind"] in ("display_data", "update_display_data")]
    assert [o["kind"] for o in shown].count("display_data") == 1, "it is drawn anew in its place"
    return [(o["data"]["text/plain"], o["data"]["text/html"]) for o in shown]


def result(cell):
    [found] = [o["data"] for o in cell if o["kind"] == "execute_result"]
    return found


@pytest.mark.slow
def test_the_cells_of_the_notebook_run_and_every_pair_is_in_the_files_exactly_once(tmp_path):
    cells = cells_run(NOTEBOOK, tmp_path)
    verdict, counted = "".join(map(printed, cells)).splitlines()
    assert verdict.startswith("Verdict(kept='yes'"), verdict
    assert counted == COUNTED
    assert not [cell for cell in cells if "SettingsHurt" in printed(cell, "stderr")]


def test_a_notebook_follows_a_run_and_shows_it(broken):
    _, _, _, running, shown, added, careless, _ = broken[0]
    told = cards(running)
    assert "its slots start" in told[0][0]
    assert any("is killed (kill slot=1 at=2s" in text for text, _ in told)
    assert "its output is right" in told[-1][0]
    assert 'class="verdict running"' in told[-2][1]
    assert 'class="verdict yes"' in told[-1][1]
    assert "records per second" in told[-1][1]
    assert "all input is processed" in told[-1][1]
    assert "are what comes out without failures" in result(shown)["text/html"]
    assert printed(added) == "181900 of 181900 paid, in 80 of 80 totals\n"
    assert "its output is wrong" in cards(careless)[-1][0]
    assert "the output is wrong: missing totals(customer=" in result(careless)["text/plain"]


def test_the_page_of_a_notebook_can_be_sent_to_anybody(broken):
    page = (broken[1] / "broken.html").read_text()
    assert "paid-per-customer-aligned-" in page
    assert "Failure 1: slot 1 lost" in page


def test_a_notebook_has_no_outputs_of_somebody_else():
    cells = json.loads(BREAK_IT.read_text())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["id"] for cell in code if cell["outputs"] or cell["execution_count"]] == []
    assert len(cells) == 2 * len(code), "every cell has its words"


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
