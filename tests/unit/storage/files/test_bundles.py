"""Old manifests are gathered into bundles; whoever reads finds the same as before, at every moment."""

import os
import shutil
from functools import partial
from types import SimpleNamespace

import pytest

from snapline.errors import ObjectDamaged
from snapline.judge.reader import BrokenChain, read_chain
from snapline.rundir.directory import RunDirectory
from snapline.rundir.lines.fork import Fork, fill_fork
from snapline.rundir.lines.kept import read_ledger
from snapline.rundir.lines.needs import _output
from snapline.rundir.past import read_past
from snapline.storage.files.manifests import BUNDLE, FileManifests
from snapline.storage.files.outlet import FileOutlet
from snapline.storage.files.store import FileStore
from written_ledger import B, WrittenLedger

COMMITS = 3 * BUNDLE + 20


@pytest.fixture(autouse=True)
def no_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda fd: None)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The same run twice: collected, and as it would be if nothing were."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda fd: None)
        return [
            WrittenLedger(tmp_path_factory.mktemp(name), COMMITS, 1, collect=collect)
            for name, collect in (("collected", True), ("whole", False))
        ]


@pytest.fixture
def collected(runs, tmp_path):
    return runs[0].copied(tmp_path / "collected")


@pytest.fixture
def whole(runs, tmp_path):
    return runs[1].copied(tmp_path / "whole")


def folder(ledger):
    return ledger.directory.path / "output" / "manifests"


def files(ledger):
    return sorted(path.name for path in folder(ledger).iterdir())


def everything(ledger):
    """What the readers of a run find."""
    output = ledger.directory.output
    places = range(0, COMMITS + 1, 50)
    return (
        output.published(),
        output.pieces(B, "committed"),
        [output.pieces_between(B, after, through) for after in places for through in places],
        list(output.follow().published()),
        read_chain(ledger.directory.path / "output", [B]),
        read_past(ledger.directory, ledger.job).number,
    )


def test_few_files_are_left_and_readers_find_the_same(collected, whole):
    assert len(files(whole)) == COMMITS
    bundles = [name for name in files(collected) if "-" in name]
    assert bundles == ["1-128.obj", "129-256.obj", "257-384.obj"]
    assert len(files(collected)) == len(bundles) + COMMITS - 3 * BUNDLE
    assert everything(collected) == everything(whole)


def test_a_fork_from_a_kept_line_has_the_bundles_and_no_manifest_behind_the_line(
    collected, tmp_path
):
    ledger = read_ledger(collected.directory, SimpleNamespace(options=()))
    for line in ledger.lines:
        needs = list(_output(collected.directory, line))
        for need in needs:
            need.check()
        paths = tuple(dict.fromkeys(need.path for need in needs))
        assert folder(collected) / "257-384.obj" in paths
        fork = Fork(collected.directory, line, ledger.last, paths)
        made = RunDirectory.create(
            tmp_path / "forks", "test", "aligned", {}, fill=partial(fill_fork, fork)
        )
        assert made.outlet.last_published() == line.decision.published
        assert read_past(made, collected.job).published == line.decision.published
    assert ledger.lines[0].decision.published < COMMITS


def test_a_publisher_forgets_what_is_in_bundles(runs):
    assert len(runs[0].coordinator.outlet._manifests.chain._manifests) < 2 * BUNDLE
    assert len(runs[0].coordinator.outlet._manifests.chain) == COMMITS


@pytest.mark.parametrize("moment", [0, 1, 2, 7, BUNDLE, BUNDLE + 1, 2 * BUNDLE, 3 * BUNDLE + 2])
def test_whenever_it_is_cut_off_readers_find_the_same_and_the_next_goes_on(
    whole, moment, monkeypatch
):
    steps = 0

    def cut(call):
        def counted(self, *args):
            nonlocal steps
            steps += 1
            if steps > moment:
                raise KeyboardInterrupt
            return call(self, *args)

        return counted

    expected = everything(whole)
    with monkeypatch.context() as patch:
        for name in ("put_if_absent", "delete"):
            patch.setattr(FileStore, name, cut(getattr(FileStore, name)))
        with pytest.raises(KeyboardInterrupt):
            FileOutlet(whole.directory.path / "output").compact(COMMITS)
    assert everything(whole) == expected
    FileOutlet(whole.directory.path / "output").compact(COMMITS)
    assert len(files(whole)) == 3 + COMMITS - 3 * BUNDLE
    assert everything(whole) == expected


def test_a_publisher_that_stood_still_publishes_nothing_else(whole):
    manifests = FileManifests(folder(whole))
    (number, extents), (_, others) = manifests.read(11), manifests.read(12)
    still = FileOutlet(whole.directory.path / "output")
    for path in folder(whole).iterdir():  # it has seen ten of them
        if int(path.stem) > 10:
            path.rename(path.with_suffix(".away"))
    assert still.last_published() == 10
    for path in folder(whole).glob("*.away"):
        path.rename(path.with_suffix(".obj"))
    FileOutlet(whole.directory.path / "output").compact(COMMITS)
    left = files(whole)
    assert still.publish(number, extents)
    assert not still.publish(number, others)
    assert files(whole) == left


def test_a_judge_accepts_a_second_copy_and_nothing_else(whole):
    output, copy = whole.directory.path / "output", folder(whole) / "11.obj"
    saved, other = output / "saved", output / "other"
    shutil.copy(copy, saved)
    shutil.copy(folder(whole) / "12.obj", other)
    expected = read_chain(output, [B])
    FileOutlet(output).compact(COMMITS)
    shutil.copy(saved, copy)
    assert read_chain(output, [B]) == expected
    shutil.copy(other, copy)
    with pytest.raises(BrokenChain, match="in the place of manifest 11 lies number 12"):
        read_chain(output, [B])


def test_a_bundle_that_is_gone_or_damaged_is_found(collected):
    output = collected.directory.path / "output"
    bundle = folder(collected) / "129-256.obj"
    said = bundle.read_bytes()
    bundle.write_bytes(said[:40] + b"x" + said[41:])
    for read in (lambda: read_chain(output, [B]), lambda: FileOutlet(output).last_published()):
        with pytest.raises(ObjectDamaged, match="129-256"):
            read()
    bundle.unlink()
    with pytest.raises(BrokenChain, match="manifest 129 is gone"):
        read_chain(output, [B])
