"""A run directory of somebody else: what is read, written or deleted lies in it, and nowhere else."""

import json
import os
import shutil
from dataclasses import asdict
from typing import Any

import pytest

from snapline.batch import Batch
from snapline.errors import ObjectDamaged, StoreUnavailable, UsageError
from snapline.ids import TaskId
from snapline.rundir.directory import VERSION, RunDirectory, remove_run
from snapline.rundir.journal_file import JournalFile
from snapline.rundir.spec import Spec, spec_of
from snapline.rundir.stored_input import stored_input
from snapline.storage.api import Life
from snapline.storage.files.frames import Appender
from snapline.storage.files.ingress import FileIngress, Segment, describe_ingress
from snapline.storage.files.store import FileStore
from stored_inputs import write_ingress

ROWS = Batch.of(id=[1, 2], time=[0, 1])


@pytest.fixture
def runs(tmp_path):
    return tmp_path / "runs"


@pytest.fixture
def precious(tmp_path):
    """A run that lies elsewhere, and is not to be touched."""
    made = RunDirectory.create(tmp_path / "elsewhere", "q12", "aligned", {}).path
    return made.rename(made.with_name("precious"))


@pytest.fixture
def run(runs):
    return RunDirectory.create(runs, "q12", "aligned", {})


# Deleting.


@pytest.mark.parametrize(
    "name",
    ["../elsewhere/precious", "here/../../elsewhere/precious", "..", ".", "", "{0}", "sub/x"],
)
def test_only_a_name_is_removed_and_no_path(runs, run, precious, name):
    shutil.copytree(run.path, runs / "sub" / "x")
    (runs / "here").mkdir()
    (runs / "run.json").write_text('{"version": 3}')
    with pytest.raises(UsageError, match=r"no name of a run|no run"):
        remove_run(runs, name.format(precious))
    assert precious.is_dir()
    assert run.path.is_dir()
    assert (runs / "sub" / "x" / "run.json").is_file()


def test_a_link_to_a_run_is_not_removed_nor_what_it_leads_to(runs, run, precious):
    (runs / "mine").symlink_to(precious)
    os.utime(precious / "run.json", (2e9, 2e9))
    for name in ("mine", "last"):
        with pytest.raises(UsageError, match="is a link"):
            remove_run(runs, name)
    assert (precious / "run.json").is_file()


def test_what_a_link_in_a_run_leads_to_survives_the_run(runs, run, precious):
    (run.path / "out").symlink_to(precious)
    (run.path / "store" / "file").symlink_to(precious / "run.json")
    assert remove_run(runs, run.name) == run.name
    assert not run.path.exists()
    assert (precious / "run.json").is_file()


def test_a_link_that_takes_the_place_of_a_run_meanwhile_is_not_followed(
    runs, run, precious, monkeypatch
):
    def swap(directory):
        run.path.rename(runs / "moved")
        (runs / run.name).symlink_to(precious)

    monkeypatch.setattr(RunDirectory, "check_version", swap)
    with pytest.raises(UsageError, match="cannot remove"):
        remove_run(runs, run.name)
    assert (precious / "run.json").is_file()


def test_a_name_that_is_no_run_is_not_taken_for_the_present_directory(runs, run, monkeypatch):
    monkeypatch.chdir(run.path)
    for act in (RunDirectory.open, remove_run):
        with pytest.raises(UsageError, match="there is no run 'typo'"):
            act(runs, "typo")


# Reading.


@pytest.mark.parametrize("place", ["result.json", "store/object", "output", "journal/x.jsonl"])
def test_a_run_directory_with_a_link_that_leads_out_is_not_opened(runs, run, precious, place):
    (run.path / place).parent.mkdir(exist_ok=True)
    (run.path / place).symlink_to(precious)
    with pytest.raises(UsageError, match="out of the run directory"):
        RunDirectory.open(runs, run.name)


def test_a_pipe_in_a_run_directory_keeps_nobody_waiting(runs, run):
    os.mkfifo(run.path / "result.json")
    with pytest.raises(UsageError, match="neither a file nor a directory"):
        RunDirectory.open(runs, run.name)


def test_links_inside_and_a_link_to_the_run_itself_are_followed(runs, run):
    (run.path / "again").symlink_to(run.path / "run.json")
    (runs / "alias").symlink_to(run.path)
    assert RunDirectory.open(runs, "alias").path == run.path


@pytest.mark.parametrize("content", ["[]", "3", "[" * 100_000, "{"])
def test_a_run_that_is_no_object_is_said_to_be_unreadable(runs, run, content):
    (run.path / "run.json").write_text(content)
    with pytest.raises(UsageError, match="cannot be read"):
        RunDirectory.open(runs, run.name)


NAMES = ["../secret", "/etc/passwd", "a/b", ".."]


@pytest.mark.parametrize("name", NAMES[:-1])
def test_a_manifest_does_not_lead_out_of_the_output(run, name):
    task = TaskId("out/0")
    run.outlet.open(Life(task, 1, 1), 0).close()
    manifest = {"number": 1, "extents": {task: [name, 0, 1]}}
    FileStore(run.path / "output" / "manifests").put("1", json.dumps(manifest).encode())
    (run.path / "secret.egress").write_bytes(b"")
    pieces = run.output.pieces(task, "committed")
    assert pieces == [(name, 0, 1)]
    for reader in (run.output, run.output.follow()):
        with pytest.raises(ObjectDamaged, match="no name of a file"):
            list(reader.read(pieces[0]))


@pytest.mark.parametrize("name", NAMES)
def test_the_description_of_an_input_does_not_lead_out_of_it(tmp_path, name):
    segment = Segment(name, (), (0, 10))
    describe_ingress(tmp_path / "s", ROWS.schema, [[segment]])
    with pytest.raises(ObjectDamaged, match="no name of a file"):
        FileIngress(tmp_path / "s")
    write_ingress(tmp_path / "secret", [[ROWS]])
    (tmp_path / "input").mkdir()
    params = {"seed": 1, "partitions": 1, "records": 2, "duration_ms": 1}
    description = {"version": 2, "workload": "q12", "params": params, "format": "log"}
    description["sources"] = {name: {"records": 2}}
    (tmp_path / "input" / "input.json").write_text(json.dumps(description))
    with pytest.raises((ObjectDamaged, UsageError), match="no name of a file"):
        stored_input(tmp_path / "input")


# Writing: a resume trusts the code of a run, and not the links that somebody has put into its directory.


def test_no_file_is_written_through_a_link(run, precious):
    target = precious / "run.json"
    before = target.read_text()
    for name in ("run.json", ".run.json.draft", "log", "driver-1.jsonl", "x.index"):
        (run.path / name).unlink(missing_ok=True)
        (run.path / name).symlink_to(target)
    run.write("run.json", {"version": 3})
    assert not (run.path / "run.json").is_symlink()
    with pytest.raises(OSError, match="symbolic"):
        JournalFile(run.path / "driver-1.jsonl")
    with pytest.raises(StoreUnavailable):
        Appender(run.path / "log")
    assert target.read_text() == before


# What was run.

CHANGED: dict[str, list[Any]] = {
    "flow": [3, "", None],
    "protocol": ["unknown", 3, None, ["aligned"], ""],
    "guarantee": ["x", 7],
    "slots": ["x", 0, -1, 10**9, None, True],
    "rate": ["slow", 0, 1e400],
    "duration_ms": ["x", -1, 10**18],
    "interval_ms": [0, "x"],
    "faults": [3, [], None],
    "seed": ["x", -1, 10**30],
    "hot": ["x", 1000],
    "input": [3],
    "origin_s": ["x", [], 1e400, -1e300, float("nan")],
    "settings": [3, [[1]], "ab", [["a", "b"]]],
    "warm_up_ms": ["5s", -1],
    "pools": [3, "ab", [["model", 0]], [["model", "x"]]],
    "save": [3, "ab", [["count", "soon"]], [["count", None]]],
    "inputs": [3, "ab", [["count", "loose"]], [[1, "keep"]]],
    "drawn": ["x"],
    "system": [3],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in CHANGED.items() for value in values]
)
def test_a_run_whose_description_was_changed_to_nonsense_is_refused_with_the_field(
    runs, run, name, value
):
    run.write("run.json", {"version": VERSION, **asdict(Spec("q12"))})
    assert spec_of(run) == Spec("q12")
    run.write("run.json", {"version": VERSION, **asdict(Spec("q12")), name: value})
    with pytest.raises(UsageError, match=rf"run\.json was changed: {name}"):
        spec_of(run)


def test_a_traceback_with_what_no_file_can_hold_is_written_all_the_same(tmp_path):
    """If it were not, the slot would end before its last word had left, and be started again and again."""
    directory = RunDirectory.create(tmp_path, "flow", "aligned", {})
    directory.write_error(1, 2, "ValueError: no file 'a\udc80b'")
    (story,) = directory.errors.iterdir()
    assert story.read_text() == "ValueError: no file 'a\\udc80b'"
