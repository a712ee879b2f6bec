"""Where sinks write Parquet files: what is refused before a run, and what a run claims."""

import pytest

import snapline as sl
from snapline.batch import Batch
from snapline.errors import GraphError, UsageError
from snapline.rundir.spec import Spec, spec_of
from snapline.runs.run import create_run, prepare
from snapline.runs.sink_folders import check_claimed, check_new
from snapline.storage.api import Extent, Life
from snapline.storage.parquet.sink_files import HIDDEN


def a_flow(**folders):
    flow = sl.Dataflow("numbers")
    numbers = flow.source(sl.records([{"n": n} for n in range(4)], rate=10))
    for name, folder in folders.items():
        numbers.sink(name, to=folder)
    return flow


def prepared(flow, tmp_path, protocol="aligned"):
    spec = Spec("numbers", protocol=protocol, slots=1)
    return prepare(spec, flow=flow, runs=tmp_path / "runs")


def test_a_run_claims_the_directories_of_its_sinks_and_writes_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    flow = a_flow(here="out/here", there=tmp_path / "there", nowhere=None)
    ready = prepared(flow, tmp_path)
    assert not (tmp_path / "out").exists(), "nothing is written before the run"
    directory = create_run(ready)
    folders = {"here": tmp_path / "out" / "here", "there": tmp_path / "there"}
    assert directory.folders == folders
    assert spec_of(directory) == ready.spec
    check_claimed(directory)
    (task,) = ready.job.deployment.sinks["here"]
    egress = directory.storage.outlet.open(Life(task, 1, 1), 0)
    egress.append(Batch.of(n=[1, 2]))
    egress.cut()
    egress.sync()
    assert directory.outlet.publish(1, {task: Extent(egress.file, 0, 2)})
    assert [path.name for path in folders["here"].glob("*.parquet")] == [
        "part-000001-0-0-2.parquet"
    ]
    with pytest.raises(UsageError, match="holds that of another run"):
        prepared(flow, tmp_path)
    (folders["there"] / HIDDEN / "owner.json").unlink()
    with pytest.raises(UsageError, match="there does not hold the output of this run"):
        check_claimed(directory)


def test_a_directory_that_cannot_be_used_is_refused_before_the_run(tmp_path):
    full = tmp_path / "full"
    full.mkdir()
    (full / "mine.txt").touch()
    for folder, message in {
        full: r"it is not empty \(mine.txt\)",
        full / "mine.txt": r"mine.txt is a file; name a directory \(to=\)",
        full / "mine.txt" / "x": r"mine.txt is a file; name a directory \(to=\)",
    }.items():
        with pytest.raises(UsageError, match=message):
            prepared(a_flow(out=folder), tmp_path)
    with pytest.raises(UsageError, match=r"a and b write to .*same: give each its own directory"):
        prepared(a_flow(a=tmp_path / "same", b=tmp_path / "same"), tmp_path)
    with pytest.raises(UsageError, match="none commits no lines: leave out to="):
        prepared(a_flow(out=tmp_path / "out"), tmp_path, "none")
    assert not (tmp_path / "runs").exists()
    assert not (tmp_path / "out").exists()


def test_a_sink_that_names_no_directory_or_another_format_is_refused():
    stream = sl.Dataflow("numbers").source(sl.records([{"n": 1}], rate=1))
    with pytest.raises(GraphError, match="'out' can write the format parquet, and not 'csv'"):
        stream.sink("out", to="out", format="csv")
    with pytest.raises(GraphError, match="'out' has a format, but no directory: say to="):
        stream.sink("out", format="parquet")
    for wrong in ("", " ", 3, b"out", "a\0b"):
        with pytest.raises(GraphError, match="'out' needs the name of a directory, not"):
            stream.sink("out", to=wrong)


def test_a_flow_without_directories_is_written_as_ever(tmp_path):
    check_new(a_flow(out=None), prepared(a_flow(out=None), tmp_path, "none").job.protocol)
