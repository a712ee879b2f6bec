"""The lines that real runs keep: `verify` names every damaged file that one needs, and no other file.

A fork from each of them ends with the output that the oracle expects.
"""

import errno
import json
import random
import shutil
import sys

import pytest
from lines_of_runs import driven, flipped, needed_bytes, removed, truncated, vouched_bytes

from driver_in_process import PATIENT, SPEC, use_processes
from snapline.cli.app import main
from snapline.engine.coordinator.decider import line_of
from snapline.engine.slot.checkpoints import key_of
from snapline.errors import RunDamaged, StoreUnavailable, UsageError
from snapline.rundir.directory import RunDirectory, run_directories
from snapline.rundir.lines import fork as forking
from snapline.rundir.lines.kept import kept_lines, read_ledger
from snapline.rundir.lines.verify import verify
from snapline.rundir.presence import Presence
from snapline.rundir.spec import spec_of
from snapline.runs.run import create_run, fork, prepare_fork
from snapline.storage.files.places import copy_file
from snapline.workload import WORKLOADS
from snapline.workload.common.base import Params

FILES = 12
"""How many files of a kind are damaged, at most: a slow machine commits many lines."""
LINES = {"aligned": 2, "uncoordinated": 3}


@pytest.fixture(scope="module", params=LINES)
def driver(request, tmp_path_factory):
    with pytest.MonkeyPatch.context() as monkeypatch:
        options = (("kept_lines", LINES[request.param]),)
        runs = tmp_path_factory.mktemp("runs")
        return driven(monkeypatch, runs, request.param, options=options)


@pytest.fixture(scope="module")
def directory(driver):
    return driver.directory


@pytest.fixture(scope="module")
def needed(directory):
    """The files that kept lines need; of output files the row through which they are needed, too."""
    stops = {}
    for task in directory.output.tasks():
        for piece in directory.output.pieces(task, "committed"):
            stops[f"output/{piece.file}.egress"] = piece.stop
    files = verify(directory).files
    last = read_ledger(directory, spec_of(directory)).last
    assert last.over
    # The last decision only says that the run is over: no line needs it.
    return {file: stops.get(file) for file in files if f"{last.number:08d}" not in file}


def accused(directory):
    return [damage.file for damage in verify(directory).damages]


def test_nothing_is_accused_where_nothing_is_damaged(directory):
    verified = verify(directory)
    assert verified.damages == ()
    most = LINES[spec_of(directory).protocol]
    assert 1 < len(verified.lines) <= most + 1  # the newest may share a checkpoint with them
    assert verified.bytes == sum((directory.path / file).stat().st_size for file in verified.files)


def test_the_kept_lines_are_those_that_the_coordinator_kept(driver):
    decider = driver.engine.decider
    kept = [dict(line.checkpoints) for line in decider.kept.lines]
    newest = dict(line_of(decider.chains).checkpoints)
    lines = [
        dict(line_of(line.decision.chains).checkpoints) for line in kept_lines(driver.directory)
    ]
    assert lines == (kept if kept[-1] == newest else [*kept, newest])


@pytest.mark.parametrize("kind", ["decision", "snapshot", "logs", "manifests", "egress"])
def test_each_needed_file_that_is_damaged_is_named(directory, needed, kind):
    files = [file for file in needed if kind in file]
    assert files or kind == "logs"  # whether messages are in flight is a matter of luck
    for file in random.Random(kind).sample(files, min(len(files), FILES)):
        path, rng = directory.path / file, random.Random(file)
        with removed(path):
            assert set(accused(directory)) == {file}
        with flipped(path, rng, vouched_bytes(path)):
            assert set(accused(directory)) == {file}
        with truncated(path, rng, needed_bytes(path, needed[file])):
            assert set(accused(directory)) == {file}
    assert accused(directory) == []


def test_a_file_that_no_kept_line_needs_is_never_accused(directory, needed):
    kinds = ("store/snapshot", "store/result", "logs", "output", "journal/slot", "origin")
    found = (str(p.relative_to(directory.path)) for p in directory.path.rglob("*") if p.is_file())
    others = [file for file in found if file not in needed and file.startswith(kinds)]
    assert others
    for file in random.Random(1).sample(others, min(len(others), FILES)):
        path, rng = directory.path / file, random.Random(file)
        with removed(path):
            assert accused(directory) == []
        for damage in (flipped, truncated):
            if path.stat().st_size:
                with damage(path, rng, path.stat().st_size):
                    assert accused(directory) == []


def test_all_that_is_damaged_is_named_at_once_with_what_it_is_needed_for(directory, tmp_path):
    copy = RunDirectory(tmp_path / directory.name)
    shutil.copytree(directory.path, copy.path)
    snapshot = next(file for file in verify(copy).files if "snapshot" in file)
    for file in (snapshot, "output/manifests/1.obj"):
        (copy.path / file).unlink()
    damages = {damage.file: damage.needed_for for damage in verify(copy).damages}
    assert set(damages) == {snapshot, "output/manifests/1.obj"}
    public = [str(line.number) for line in kept_lines(copy) if line.decision.published]
    word = "lines" if len(public) > 1 else "line"
    assert damages["output/manifests/1.obj"] == f"manifest 1 ({word} {', '.join(public)})"


def test_it_tells_how_far_it_has_come(directory):
    told = []
    verified = verify(directory, lambda done, total: told.append((done, total)))
    assert told == sorted(told)
    assert told[-1] == (verified.bytes, verified.bytes)


def test_verify_changes_nothing(directory):
    before = {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in directory.path.rglob("*")}
    verify(directory)
    assert {
        p: (p.stat().st_mtime_ns, p.stat().st_size) for p in directory.path.rglob("*")
    } == before


@pytest.fixture
def snapline(monkeypatch, capsys, directory):
    """`snapline` with words; the exit code, and what it said."""

    def call(*words, runs=directory.path.parent):
        monkeypatch.setattr(sys, "argv", ["snapline", *words, "--runs", str(runs)])
        with pytest.raises(SystemExit) as exited:
            main()
        told = capsys.readouterr()
        return exited.value.code or 0, told.out, told.err

    return call


def test_lines_are_shown_to_people_and_to_programs(snapline, directory):
    code, said, _ = snapline("checkpoints", directory.name)
    numbers = [line.number for line in kept_lines(directory)]
    assert code == 0
    assert f"{len(numbers)} lines that {directory.name} keeps" in said
    assert [row.split()[0] for row in said.splitlines()[2 : 2 + len(numbers)]] == list(
        map(str, numbers)
    )
    assert said.splitlines()[1 + len(numbers)].endswith("newest")
    code, said, _ = snapline("checkpoints", "last", "--json")
    shown = json.loads(said)
    assert (code, shown["version"], shown["run"]) == (0, 1, directory.name)
    assert [line["line"] for line in shown["lines"]] == numbers
    for line, kept in zip(shown["lines"], kept_lines(directory), strict=True):
        metas = {chain[-1].task: chain[-1] for chain in kept.decision.chains.values() if chain}
        assert {each["task"]: each["bytes"] for each in line["checkpoints"]} == {
            task: meta.bytes for task, meta in metas.items()
        }
        assert line["bytes"] == sum(each["bytes_in_all"] for each in line["checkpoints"])
        assert line["age_s"] >= 0
    assert "verified" not in shown


def test_damage_is_shown_to_people_and_to_programs(snapline, directory, needed):
    assert snapline("checkpoints", "last", "--verify")[0] == 0
    file = next(file for file in needed if "snapshot" in file)
    with removed(directory.path / file):
        code, said, _ = snapline("checkpoints", "last", "--verify")
        assert code == 1
        assert f"damaged {file}\n" in said
        assert "  needed for: checkpoint " in said
        code, said, _ = snapline("checkpoints", "last", "--verify", "--json")
        [damage] = json.loads(said)["verified"]["damages"]
        assert (code, damage["file"]) == (1, file)


def test_a_damaged_ledger_hides_the_lines_and_is_named(snapline, directory):
    path = directory.path / "store" / "decision" / "00000002.obj"
    with flipped(path, random.Random(1), path.stat().st_size):
        code, said, _ = snapline("checkpoints", "last", "--verify")
        assert code == 1
        assert said.startswith("damaged store/decision/00000002.obj\n")
        assert "keeps" not in said
        code, said, told = snapline("checkpoints", "last")
        assert (code, said) == (2, "")
        assert "decision 2 (decision/00000002) is damaged" in told


def test_a_run_that_goes_on_is_shown_but_not_verified(snapline, directory):
    presence = Presence.announce(directory, "me")
    try:
        assert snapline("checkpoints", "last")[0] == 0
        code, _, told = snapline("checkpoints", "last", "--verify")
        assert code == 2
        assert "is being run by process" in told
    finally:
        presence.leave()


def test_a_run_without_checkpoints_has_no_lines(tmp_path):
    directory = RunDirectory.create(tmp_path, "q12", "none", {"flow": "q12", "protocol": "none"})
    with pytest.raises(UsageError, match="under none, which has no lines"):
        verify(directory)


def test_a_run_that_decided_nothing_keeps_nothing(tmp_path):
    directory = RunDirectory.create(tmp_path, "q12", "aligned", {**SPEC.said()})
    assert verify(directory).lines == ()
    assert kept_lines(directory) == ()


# Forks.


def contents(path):
    """All that a run directory holds, and when it was written."""
    files = (each for each in sorted(path.rglob("*")) if each.is_file())
    return {each: (each.read_bytes(), each.stat().st_mtime_ns) for each in files}


def rows(directory):
    """How many rows of each sink task are public."""
    pieces = {t: directory.output.pieces(t, "committed") for t in directory.output.tasks()}
    return {task: sum(p.stop - p.start for p in found) for task, found in pieces.items()}


def manifests(directory, through):
    places = directory.path / "output" / "manifests"
    return [(places / f"{place}.obj").read_bytes() for place in range(1, through + 1)]


@pytest.fixture(scope="module")
def forks(directory, tmp_path_factory):
    """What became of a fork from each kept line, and whether the run that was forked is as before."""
    before, runs = contents(directory.path), tmp_path_factory.mktemp("forks")
    with pytest.MonkeyPatch.context() as monkeypatch:
        use_processes(monkeypatch)
        lines = kept_lines(directory)
        made = [
            fork(str(directory.path), line.number, runs=runs, timeouts=PATIENT) for line in lines
        ]
    assert contents(directory.path) == before
    return list(zip(lines, made, strict=True))


def test_a_fork_from_each_kept_line_ends_with_the_output_of_the_oracle(directory, forks):
    for line, finished in forks:
        assert finished.verdict.kept == "yes", finished.verdict
        assert rows(finished.directory) == rows(directory)
        said = finished.directory.spec()
        came = {"run": directory.name, "line": line.number, "id": directory.identity}
        assert said["forked_from"] == came
        assert said["id"] != directory.identity
        assert said["faults"] == ""
        public = line.decision.published
        assert manifests(finished.directory, public) == manifests(directory, public)


def test_a_fork_of_a_fork_is_complete_by_itself(directory, forks, tmp_path, monkeypatch):
    use_processes(monkeypatch)
    first = forks[0][1].directory
    alone = RunDirectory(tmp_path / first.name)
    shutil.copytree(first.path, alone.path)
    assert verify(alone).damages == ()
    oldest = kept_lines(alone)[0]
    finished = fork(alone.name, oldest.number, runs=tmp_path, timeouts=PATIENT)
    assert finished.verdict.kept == "yes"
    assert finished.directory.spec()["forked_from"]["run"] == alone.name
    assert rows(finished.directory) == rows(directory)


@pytest.fixture
def refused(directory, tmp_path):
    """What is said about a fork that is refused; nothing is made."""

    def call(line, kind=UsageError, **named):
        with pytest.raises(kind) as told:
            prepare_fork(str(directory.path), line, runs=tmp_path, **named)
        return str(told.value)

    yield call
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_goes_on_is_not_forked(directory, refused):
    presence = Presence.announce(directory, "me")
    try:
        told = refused(kept_lines(directory)[0].number)
    finally:
        presence.leave()
    assert told.startswith(f"{directory.name} is being run by process ")


def test_a_line_that_is_not_kept_is_refused_and_the_others_are_named(directory, refused):
    kept = ", ".join(str(line.number) for line in kept_lines(directory))
    assert refused(99).startswith(f"{directory.name} does not keep line 99: it keeps {kept}; ")
    assert refused(None).endswith(f"{directory.name} keeps {kept}")


def test_a_fork_of_another_flow_is_refused(directory, refused):
    other = WORKLOADS["q3"].build(Params(1, 2, 10, 1_000))
    told = refused(kept_lines(directory)[0].number, flow=other)
    assert told.startswith("this run was started with another dataflow")


def test_a_damaged_line_is_not_forked_and_its_file_is_named(directory, refused):
    line = kept_lines(directory)[-1]
    path = directory.storage.untroubled.path(key_of(line.snapshots[-1]))
    with removed(path):
        told = refused(line.number, RunDamaged)
    assert told.startswith(f"line {line.number} of {directory.name} is damaged ({path}: ")


def test_a_fork_that_cannot_be_copied_leaves_nothing(directory, refused, tmp_path, monkeypatch):
    line = kept_lines(directory)[0].number
    prepared = prepare_fork(str(directory.path), line, runs=tmp_path)
    copied = []

    def copy(source, target):
        copied.append(target)
        if len(copied) == 4:
            raise OSError(errno.ENOSPC, "No space left on device")
        copy_file(source, target)

    monkeypatch.setattr(forking, "copy_file", copy)
    with pytest.raises(StoreUnavailable, match="No space left on device"):
        create_run(prepared)
    assert len(copied) == 4


def test_a_fork_that_was_killed_while_it_was_made_is_no_run(directory, tmp_path, monkeypatch):
    line = kept_lines(directory)[0].number
    prepared = prepare_fork(str(directory.path), line, runs=tmp_path)
    seen = []
    monkeypatch.setattr(forking, "copy_file", lambda *_: seen.append(run_directories(tmp_path)))
    create_run(prepared)
    assert seen
    assert not any(seen)
    assert len(run_directories(tmp_path)) == 1
