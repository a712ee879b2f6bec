"""One file of a run is damaged: `validate` and a resume are right all the same, or say what is wrong."""

import json
import sys

import pytest
from damaged_runs import (
    DAMAGES,
    KINDS,
    copy_of,
    damage,
    files_of,
    finished_run,
    unfinished_run,
)

from driver_in_process import use_processes
from snapline.cli.app import main
from snapline.errors import SnaplineError
from snapline.judge.verdict import Verdict
from snapline.rundir.directory import RunDirectory
from snapline.runs import run as run_module
from snapline.storage.api import rows_of


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Two runs that came to their ends; the second is where foreign files come from."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        use_processes(monkeypatch)
        home = tmp_path_factory.mktemp("finished")
        return finished_run(home), finished_run(home, seed=2)


@pytest.fixture
def validate(monkeypatch, capsys, tmp_path):
    """Judges a run by the command, and gives exit code, standard output and standard error."""

    def call(name):
        arguments = ["snapline", "validate", name, "--runs", str(tmp_path), "--json"]
        monkeypatch.setattr(sys, "argv", arguments)
        with pytest.raises(SystemExit) as left:
            main()
        told = capsys.readouterr()
        return left.value.code, told.out, told.err

    return call


def test_a_run_leaves_files_of_all_kinds_that_are_damaged_here(finished):
    assert set(files_of(finished[0])) == set(KINDS)


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_with_a_damaged_file_is_judged_rightly_or_not_at_all(
    finished, validate, tmp_path, kind, how
):
    """The output of the run is right: kept is the right verdict, and broken would be a wrong one,
    unless the output itself, or the chain that publishes it, is what was damaged."""
    for seed in range(3):
        path = copy_of(finished[0], tmp_path / str(seed))
        damage(path, kind, how, finished[1], seed)
        code, out, err = validate(str(path))
        assert "Traceback" not in err, err
        assert out or code == 2, err
        if code == 2:
            assert len(err.strip().splitlines()) <= 3, err
        else:
            kept = json.loads(out)["kept"]
            assert kept != "no" or kind in ("egress", "manifest"), out
            if kind in ("egress", "manifest"):
                assert kept != "yes" or same_output(path, finished[0]), out


def same_output(path, whole):
    """Whether the rows that were published are the same. Behind the last of them a file may differ: there
    stand the mark of a sync, and rows of a slot that was lost before anybody published them."""
    return published_rows(path) == published_rows(whole)


def published_rows(path):
    """Every row that a reader sees, read by the code of the storage and not by that of the judge."""
    output = RunDirectory(path).output
    return [row for rows in rows_of(output, output.tasks(), "committed") for row in rows.rows()]


# Going on with a run.


@pytest.fixture(scope="module")
def unfinished(tmp_path_factory):
    """Two runs that were interrupted after some lines."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        use_processes(monkeypatch)
        home = tmp_path_factory.mktemp("unfinished")
        return unfinished_run(home), unfinished_run(home, seed=2)


LEFT = [kind for kind in KINDS if kind not in ("result.json", "stored result")]
QUICK = {("decision", "flipped"), ("manifest", "removed"), ("message log", "truncated")}


@pytest.mark.parametrize(
    ("kind", "how"),
    [
        pytest.param(kind, how, marks=() if (kind, how) in QUICK else pytest.mark.slow)
        for kind in LEFT
        for how in DAMAGES
    ],
)
def test_a_damaged_run_goes_on_rightly_or_says_why_it_cannot(
    unfinished, tmp_path, monkeypatch, kind, how
):
    """A resume keeps what was promised, or ends with one message; it never hangs."""
    use_processes(monkeypatch)
    path = copy_of(unfinished[0], tmp_path)
    damage(path, kind, how, unfinished[1], 0)
    try:
        verdict = run_module.resume(path.name, runs=tmp_path).verdict
    except SnaplineError as error:
        verdict = Verdict("unknown", str(error))
    assert verdict.kept != "no" or kind == "egress", verdict  # whose rows are what is published
    assert verdict.kept == "yes" or len(verdict.because.splitlines()) == 1
