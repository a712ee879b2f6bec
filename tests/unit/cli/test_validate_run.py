"""`snapline validate RUN` over run directories that were made by hand: nothing here runs a flow."""

import json
import sys
from dataclasses import asdict

import numpy as np
import pytest

from snapline.batch import Batch, concat
from snapline.cli.app import main
from snapline.dataflow.deploy import deploy
from snapline.engine.reference.reference import reference_output
from snapline.ids import Epoch, TaskId
from snapline.journal.entry import COORDINATOR, Happened
from snapline.journal.fault_happenings import ProcessKilled
from snapline.journal.happenings import JobFinished, JobRunning
from snapline.judge.tables import SystemTables
from snapline.rundir.directory import RunDirectory
from snapline.rundir.journal_file import JournalFile
from snapline.rundir.program import find_program
from snapline.rundir.results import VERSION
from snapline.rundir.spec import Spec
from snapline.storage.api import Extent, Life
from snapline.workload import WORKLOADS

FLOW = """import snapline as sl
flow = sl.Dataflow("mine")
flow.source(sl.nexmark.bids(rate=50, seed=1)).key_by("bidder").count().sink("counts")
"""
RESULT = {
    "version": VERSION,
    "kept": "yes",
    "because": "all is well",
    "problems": [],
    "metrics": {"duration_s": 5.0},
    "rows": {},
    "faults": [],
    "events": [],
}


@pytest.fixture
def snapline(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["snapline", "validate", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        told = capsys.readouterr()
        return left.value.code, told.out, told.err

    return run


def spec_of(flow, **given):
    return Spec(flow, slots=1, rate=100, duration_ms=4_000, size="small", origin_s=1_000.0, **given)


@pytest.fixture
def finished(tmp_path):
    """Makes a run that is over: what was written to each sink, and how many rows of it are public."""

    def make(flow, spoil=lambda sink, rows: (rows, len(rows)), result=RESULT, **given):
        spec = spec_of(flow, **given)
        runs = tmp_path / "runs"
        directory = RunDirectory.create(runs, "x", spec.protocol, asdict(spec))
        right = reference_output(deploy(find_program(spec).flow, spec.slots), 0)
        extents = {}
        for sink, rows in right.items():
            task, (written, public) = TaskId(f"{sink}/0"), spoil(sink, rows)
            egress = directory.outlet.open(Life(task, 1, 1), 0)
            egress.append(written)
            egress.sync()
            extents[task] = Extent(egress.file, 0, public)
        directory.outlet.publish(1, extents)
        journal = JournalFile(directory.path / "journal" / "driver-1.jsonl")
        killed = ProcessKilled("kill slot=0 at=2s")
        journal.add(Happened(2_000_000, "slot/0", Epoch(1), killed))
        journal.add(Happened(2_500_000, COORDINATOR, Epoch(1), JobRunning()))
        journal.add(Happened(5_000_000, COORDINATOR, Epoch(1), JobFinished()))
        journal.close()
        if result is not None:
            directory.write("result.json", result)
        return directory

    return make


def without_last(sink, rows):
    """The last row of the counts was written, and never published."""
    return rows, len(rows) - (sink == "counts")


def again(sink, rows):
    """The first row was written once more, by a life that was rolled back."""
    more = [rows] if sink == "late" else [rows, rows.slice(0, 1)]
    return concat(more), len(rows)


@pytest.mark.parametrize("flow", ["sst", "mst", "q12"])
def test_a_run_that_was_right_is_right_again(snapline, finished, flow):
    directory = finished(flow)
    before = {path: path.stat().st_mtime_ns for path in directory.path.rglob("*")}
    code, out, _ = snapline("last")
    assert code == 0
    assert "judged in process, from the committed output of the run" in out
    assert "kept" in out
    assert {path: path.stat().st_mtime_ns for path in directory.path.rglob("*")} == before


def test_output_that_never_became_public_is_missing_from_it(snapline, finished):
    finished("sst", without_last)
    code, out, _ = snapline("last")
    assert code == 1
    assert "is lost: resource" in out
    assert "kill slot=0 at=2s" in out
    assert snapline("last", "--promise", "at-most-once")[0] == 0
    code, out, _ = snapline("last", "--uncommitted")
    assert (code, "from the uncommitted output" in out) == (0, True)


@pytest.mark.parametrize("flow", ["sst", "q12"])
def test_what_was_written_twice_shows_in_the_uncommitted_view_only(snapline, finished, flow):
    finished(flow, again)
    assert snapline("last")[0] == 0
    code, out, _ = snapline("last", "--uncommitted", "--json")
    document = json.loads(out)
    assert (code, document["kept"]) == (1, "no")
    assert document["view"] == "uncommitted"
    assert "duplicate" in document["because"]
    assert document["guarantees"]["at-least-once"] == "yes"


def test_a_weaker_promise_of_the_run_decides(snapline, finished):
    finished("sst", without_last, guarantee="at-least-once")
    assert snapline("last")[0] == 1
    most = {"protocol": "unaligned", "guarantee": "at-most-once"}
    finished("mst", without_last, **most)
    code, out, _ = snapline("last")
    assert code == 0
    assert ["at-most-once", "yes", "decides"] in [line.split() for line in out.splitlines()]
    finished("mst", lambda sink, rows: (rows, 0), **most)
    code, out, _ = snapline("last")
    assert (code, "unknown: no output counts an event in time" in out) == (3, True)


def test_of_a_run_more_late_events_than_may_be_are_a_no(snapline, finished):
    finished("sst")
    code, out, _ = snapline("last", "--max-late", "50%", "--json")
    document = json.loads(out)
    assert (code, document["kept"], document["max_late"]) == (0, "yes", 0.5)
    assert document["late_share"] == document["late_events"] / document["inputs"] > 0
    code, out, _ = snapline("last", "--max-late", "0")
    assert (code, "are late" in out, "at most 0 % may be" in out) == (1, True, True)
    finished("q1")
    code, _, err = snapline("last", "--max-late", "0")
    assert (code, "--max-late is for outputs that name the events behind them" in err) == (2, True)


def test_of_a_run_that_did_not_come_to_its_end_nobody_knows_what_is_missing(snapline, finished):
    result = {**RESULT, "problem": "the store was away for too long"}
    finished("sst", without_last, result)
    code, out, _ = snapline("last")
    assert (code, "unknown: the store was away for too long" in out) == (3, True)
    finished("q12", result=result)
    assert snapline("last")[0] == 3


def test_a_flow_of_ones_own_is_unknown_without_a_reference(snapline, finished, tmp_path):
    (tmp_path / "mine.py").write_text(FLOW)
    finished("mine.py:flow")
    mine = ("--flow", "mine.py:flow")
    code, out, _ = snapline("last", *mine)
    assert (code, "unknown: nobody knows what this dataflow should put out" in out) == (3, True)
    assert snapline("last", *mine, "--reference")[0] == 0
    finished("mine.py:flow", without_last)
    code, out, _ = snapline("last", *mine, "--reference")
    assert (code, "missing" in out) == (1, True)


def test_columns_that_are_called_as_the_stamps_of_the_judge_are_judged_like_any_other(
    snapline, finished, tmp_path
):
    step = (
        """map(lambda b: b.select("time").with_columns(position=b["price"], written=b["bidder"]))"""
    )
    (tmp_path / "mine.py").write_text(FLOW.replace('key_by("bidder").count()', step))
    mine = ("last", "--flow", "mine.py:flow", "--reference")
    finished("mine.py:flow")
    code, out, _ = snapline(*mine)
    assert (code, "200 rows of output are what comes out without failures" in out) == (0, True), out

    def spoilt(sink, rows):
        return rows.with_columns(position=rows["position"] + (rows["position"] > 5_000)), len(rows)

    finished("mine.py:flow", spoilt)
    code, out, _ = snapline(*mine)
    assert (code, "position=" in out) == (1, True), out


def test_a_file_that_only_the_run_directory_names_is_not_executed(snapline, finished, tmp_path):
    (tmp_path / "mine.py").write_text(FLOW)
    finished("mine.py:flow")
    (tmp_path / "mine.py").write_text("from pathlib import Path\nPath('executed').touch()\n" + FLOW)
    code, out, err = snapline("last", "--reference")
    assert (code, out) == (2, "")
    assert "say --flow FILE:NAME" in err
    assert not (tmp_path / "executed").exists()


def test_a_flow_that_only_a_program_holds_is_unknown(snapline, finished, tmp_path):
    directory = RunDirectory.create(tmp_path / "runs", "x", "aligned", asdict(spec_of("mine")))
    directory.write("result.json", RESULT)
    code, out, _ = snapline("last")
    assert (code, "'mine' is that of a program" in out) == (3, True)


def test_a_run_that_is_not_over_is_bad_input(snapline, finished):
    directory = finished("sst", result=None)
    code, out, err = snapline("last")
    assert (code, out) == (2, "")
    assert f"{directory.name} is not over: 'snapline run --resume {directory.name}'" in err
    assert "--follow" in err


# Runs of other systems.


@pytest.fixture
def of_system(tmp_path):
    """Makes a run of another system, from the tables that were recorded of it."""

    def make(flow, rows, inputs=None, late=None, sink="counts", **result):
        spec = spec_of(flow, protocol="", system="structured-streaming")
        directory = RunDirectory.create(tmp_path / "runs", "x", "s", asdict(spec))
        SystemTables(inputs, {sink: rows}, late).save(directory.path)
        directory.write("result.json", {**RESULT, "rows": {sink: len(rows)}, **result})
        return directory

    return make


def numbered(rows):
    count = np.arange(len(rows), dtype=np.int64)
    return rows.with_columns(position=count, written=count)


def test_a_run_of_another_system_is_judged_by_what_was_recorded(snapline, of_system):
    spec = spec_of("sst")
    events = WORKLOADS["sst"].lineage(spec.params).events()
    right = reference_output(deploy(find_program(spec).flow, 1), 0)
    counts, late = numbered(right["counts"]), numbered(right["late"])
    of_system("sst", counts, events, late)
    assert snapline("last")[0] == 0
    code, _, err = snapline("last", "--uncommitted")
    assert (code, "--uncommitted is for Snapline's own runs" in err) == (2, True)
    of_system("sst", counts.slice(1, len(counts)), events, late)
    code, out, _ = snapline("last")
    assert (code, "missing 1" in out) == (1, True)
    of_system("sst", Batch({}, 0), events, late, problem="it died")
    code, out, _ = snapline("last")
    assert (code, "unknown: it died" in out) == (3, True)


def test_so_is_one_of_a_workload_without_lineage(snapline, of_system):
    spec = spec_of("q12")
    ((sink, rows),) = reference_output(deploy(find_program(spec).flow, 1), 0).items()
    of_system("q12", numbered(rows), sink=sink)
    assert snapline("last")[0] == 0
    of_system("q12", numbered(rows.slice(1, len(rows))), sink=sink)
    assert snapline("last")[0] == 1
    of_system("q12", rows, sink=sink)
    code, _, err = snapline("last")
    assert (code, "has no column 'position'" in err) == (2, True)
