"""Output that is kept for a while only: whatever happens, a reader finds the end of it, without a gap."""

import os
import random
import shutil
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from snapline.batch import Batch
from snapline.errors import ObjectDamaged, ObjectMissing, RowsDeleted, StorageError
from snapline.ids import TaskId
from snapline.judge.reader import (
    BrokenChain,
    Deleted,
    _stretch,
    read_chain,
    read_deleted,
    read_sinks,
)
from snapline.rundir.directory import RETAIN, RunDirectory
from snapline.rundir.lines.fork import Fork, fill_fork
from snapline.rundir.lines.kept import read_ledger
from snapline.rundir.lines.needs import _output
from snapline.rundir.past import read_past
from snapline.storage.api import Extent, Life, rows_of
from snapline.storage.files.manifests import BUNDLE
from snapline.storage.files.outlet import SEGMENTS, FileOutlet
from snapline.storage.files.output import FileOutput
from snapline.storage.files.rows import lives_in
from written_ledger import B, Coordinator

A = TaskId("a/0")
SINKS = (A, B)
RETAIN_MS = 1_600
ROLL_MS = RETAIN_MS // SEGMENTS


class Killed(BaseException):
    """The process is gone."""


@pytest.fixture(autouse=True)
def no_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda fd: None)


class Publisher:
    """Sinks and coordinator of a run in a directory, with a clock of their own."""

    def __init__(self, directory, clock):
        self.directory, self.clock = directory, clock
        self.outlet = FileOutlet(directory, RETAIN_MS, lambda: clock[0])
        self.number = self.outlet.last_published()
        self.epoch = 0
        self.rows = dict.fromkeys(SINKS, 0)
        self.decided = {}

    def begin(self, epoch):
        """New lives, of a later epoch."""
        self.epoch = epoch
        self.egress = {t: self.outlet.open(Life(t, epoch, epoch), self.rows[t]) for t in SINKS}
        self.outlet.sweep(epoch, (), written=False)

    def write(self, counts):
        """Rows, a checkpoint, and the manifest that makes them public."""
        extents = {}
        for task, count in counts.items():
            egress, start = self.egress[task], self.rows[task]
            egress.append(Batch.of(n=list(range(start, start + count))))
            egress.cut()
            egress.sync()
            if count:
                extents[task] = Extent(egress.file, start, start + count)
                self.rows[task] += count
        self.number += 1
        self.decided[self.number] = extents
        assert self.outlet.publish(self.number, extents)

    def successor(self):
        """Another process that goes on."""
        other = Publisher(self.directory, self.clock)
        other.rows, other.decided = dict(self.rows), self.decided
        other.begin(self.epoch + 1)
        return other


def readable(directory, task):
    """The public rows of a task by each of the readers, which must agree: the row numbers."""
    output = FileOutput(directory)
    found = [n for rows in rows_of(output, [task], "committed") for n in rows["n"].tolist()]
    pieces = output.pieces_between(task, output.floor().place, output.published())
    again = [w.rows["n"].tolist() for piece in pieces for w in output.read(piece)]
    assert found == [n for rows in again for n in rows]
    chain = [link for link in read_chain(directory, SINKS) if link.task == task]
    if found:
        assert (chain[0].start, chain[-1].stop) == (found[0], found[-1] + 1)
    return found


def check(directory, publisher):
    """A reader finds an end of all that was published, without a gap, and so does whoever goes on."""
    floor = FileOutput(directory).floor()
    for task in SINKS:
        assert readable(directory, task) == list(
            range(floor.rows.get(task, 0), publisher.rows[task])
        )
    last = {publisher.number: publisher.decided[publisher.number]} if publisher.number else {}
    FileOutlet(directory).check(last, publisher.number, publisher.rows)


def files(directory):
    return sorted(
        str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()
    )


def killing(patch, moment):
    """Let the process die just before its `moment`-th change of a file; returns how many it made."""
    made = [0]

    def counted(call):
        def act(*args, **kwargs):
            if made[0] == moment:
                raise Killed
            made[0] += 1
            return call(*args, **kwargs)

        return act

    patch.setattr(os, "link", counted(os.link))
    patch.setattr(Path, "unlink", counted(Path.unlink))
    return made


@pytest.mark.parametrize("seed", range(4))
def test_a_reader_finds_a_contiguous_end_whoever_is_killed_or_stands_still(
    tmp_path, seed, monkeypatch
):
    dice, clock, directory = random.Random(seed), [1_000_000], tmp_path / "output"
    publisher, still, deleted = Publisher(directory, clock), None, 0
    publisher.begin(1)
    for _ in range(60):
        clock[0] += dice.choice((0, 40, 90, 400))
        act = dice.choice(("write", "write", "write", "retain", "kill", "take over", "stand still"))
        if act == "write":
            publisher.write({task: dice.randrange(4) for task in SINKS})
        elif act == "take over":
            still = still or StoodStill(publisher)
            publisher = publisher.successor()
        elif act == "stand still" and still is not None:
            still.wake(dice)
            still = None
        else:
            killed = _retain(publisher, dice, monkeypatch, die=act == "kill")
            publisher = publisher.successor() if killed else publisher
        check(directory, publisher)
        floor = FileOutput(directory).floor()
        assert floor.place >= deleted
        assert floor.at_ms <= clock[0] - RETAIN_MS or not floor.place
        deleted = floor.place
    assert deleted


def _retain(publisher, dice, monkeypatch, die):
    """Delete what is old; True if the process was killed meanwhile."""
    with monkeypatch.context() as patch:
        killing(patch, dice.randrange(8) if die else -1)
        try:
            publisher.outlet.compact(publisher.number - dice.randrange(3))
        except Killed:
            return True
    return False


class StoodStill:
    """A driver that stands still, just before it writes a floor, while another one goes on."""

    def __init__(self, publisher):
        self.outlet, self.decided = publisher.outlet, publisher.decided
        self.last, until_ms = publisher.number, publisher.clock[0] - RETAIN_MS
        self.outlet._manifests.refresh()
        self.floor = self.outlet._manifests.next_floor(until_ms, publisher.number)

    def wake(self, dice):
        """It does what it was about to do, and what it may do next."""
        manifests = self.outlet._manifests
        if dice.random() < 0.7 and self.floor.place:
            manifests.write_floor(self.floor)
            for step in (manifests.delete_below, self.outlet._delete_rows):
                step()
            if dice.random() < 0.5:
                manifests.delete_lower_floors()
        later = [number for number in self.decided if number > self.last]
        if dice.random() < 0.5 and later:
            with suppress(StorageError):  # its file may be gone
                assert self.outlet.publish(later[0], self.decided[later[0]])
        with suppress(StorageError):
            self.outlet.compact(dice.choice(later) if later else self.last)


def test_whenever_it_is_killed_the_next_one_deletes_the_rest(tmp_path):
    def written(directory):
        clock = [0]
        publisher = Publisher(directory, clock)
        publisher.begin(1)
        for _ in range(20):
            clock[0] += ROLL_MS
            publisher.write({A: 2, B: 1})
            publisher.outlet.compact(publisher.number - 1)
        clock[0] += RETAIN_MS // 2
        return publisher

    whole = written(tmp_path / "whole")
    with pytest.MonkeyPatch.context() as patch:
        steps = killing(patch, -1)
        whole.outlet.compact(whole.number)
    assert steps[0] == 10  # a floor with its draft, two manifests of two, four files, a lower floor
    for moment in range(steps[0]):
        publisher = written(tmp_path / str(moment))
        with pytest.MonkeyPatch.context() as patch:
            killing(patch, moment)
            with pytest.raises(Killed):
                publisher.outlet.compact(publisher.number)
        check(publisher.directory, publisher)
        publisher.outlet = FileOutlet(publisher.directory, RETAIN_MS, publisher.outlet._clock)
        publisher.outlet.compact(publisher.number)
        assert files(publisher.directory) == files(whole.directory)
        shutil.rmtree(publisher.directory)


def test_what_is_kept_is_bounded_and_never_less_than_was_asked_for(tmp_path):
    directory, clock = tmp_path / "output", [0]
    publisher = Publisher(directory, clock)
    publisher.begin(1)
    published_at, most = {}, 0
    for _ in range(10 * SEGMENTS):
        clock[0] += ROLL_MS
        publisher.write({A: 1, B: 1})
        published_at[publisher.rows[A] - 1] = clock[0]
        publisher.outlet.compact(publisher.number)
        kept = readable(directory, A)
        young = [row for row, at in published_at.items() if at > clock[0] - RETAIN_MS]
        assert set(young) <= set(kept)
        most = max(most, len(files(directory)))
        first = min(life_files[0].first for life_files in lives_in(directory).values())
        old = [row for row in range(first) if row in published_at]
        assert clock[0] < 3 * RETAIN_MS or old
        assert all(published_at[row] > clock[0] - 1.5 * RETAIN_MS for row in kept)
    assert most < 100


def test_rows_of_past_lives_go_and_those_that_a_line_may_need_stay(tmp_path):
    directory, clock = tmp_path / "output", [0]
    publisher = Publisher(directory, clock)
    publisher.begin(1)
    publisher.write({A: 3, B: 3})
    second = publisher.successor()
    second.write({A: 3, B: 3})
    clock[0] += 10 * RETAIN_MS
    second.outlet.compact(1)  # a kept line may end behind manifest 1
    assert {life.epoch for life in lives_in(directory)} == {2}
    assert readable(directory, A) == [3, 4, 5]
    clock[0] += RETAIN_MS
    second.outlet.compact(2)
    assert readable(directory, A) == []
    second.write({A: 1, B: 0})
    assert readable(directory, A) == [6]


def test_readers_that_are_behind_are_told_and_not_left_waiting(tmp_path):
    directory, clock = tmp_path / "output", [1_000_000_000_000]
    publisher = Publisher(directory, clock)
    publisher.begin(1)
    publisher.write({A: 3, B: 3})
    behind, ahead = FileOutput(directory), FileOutput(directory)
    assert behind.published() == ahead.published() == 1
    [piece], follower = behind.pieces(A, "committed"), behind.follow()
    for _ in range(70):  # more than a reader looks ahead
        clock[0] += ROLL_MS
        publisher.write({A: 1, B: 1})
        publisher.outlet.compact(publisher.number)
    assert behind.published() == 71
    with pytest.raises(RowsDeleted, match=r"manifests 2 to \d+ were deleted .* 2001-09-09"):
        behind.pieces_between(A, 1, 71)
    with pytest.raises(RowsDeleted, match="rows 0 to "):
        list(ahead.read(piece))
    with pytest.raises(RowsDeleted, match="manifests 1 to "):
        list(follower.published())
    floor = ahead.floor()
    assert [p.start for p in ahead.pieces_between(A, floor.place, 71)] == [floor.rows[A]]


def test_a_gap_above_the_floor_is_damage_and_so_is_a_floor_that_is_gone(tmp_path):
    directory, clock = tmp_path / "output", [0]
    publisher = Publisher(directory, clock)
    publisher.begin(1)
    for _ in range(40):
        clock[0] += ROLL_MS
        publisher.write({A: 1, B: 1})
        publisher.outlet.compact(publisher.number)
    floor = FileOutput(directory).floor()
    assert 20 < floor.place < 35
    assert read_deleted(directory) == Deleted(floor.place, floor.rows, floor.at_ms)
    lost = directory / "manifests" / f"{floor.place + 2}.obj"
    lost.rename(tmp_path / "lost")
    with pytest.raises(ObjectMissing, match=f"{lost.name} is gone"):
        FileOutput(directory).published()
    with pytest.raises(BrokenChain, match=f"manifest {floor.place + 2} is gone"):
        read_chain(directory, SINKS)
    (tmp_path / "lost").rename(lost)
    [said] = (directory / "floors").iterdir()
    whole = said.read_bytes()
    said.write_bytes(whole.replace(b'"place"', b'"plane"'))
    for read in (FileOutput(directory).floor, lambda: read_chain(directory, SINKS)):
        with pytest.raises(ObjectDamaged):
            read()
    said.unlink()
    with pytest.raises(BrokenChain, match="manifest 1 is gone"):
        read_chain(directory, SINKS)
    with pytest.raises(ObjectMissing):
        FileOutlet(directory).check({}, publisher.number, publisher.rows)


# With a ledger: what lines need, and who goes on.


class Run:
    """A run directory whose coordinator has decided some things, and whose output is kept for a while."""

    def __init__(self, tmp_path, commits):
        self.clock = [0]
        said = {"protocol": "aligned", RETAIN: RETAIN_MS}
        self.directory = RunDirectory.create(tmp_path, "test", "aligned", said)
        self.coordinator = self.take_over("first")
        for _ in range(commits):
            self.commit()

    def outlet(self):
        return FileOutlet(self.directory.path / "output", RETAIN_MS, lambda: self.clock[0])

    def take_over(self, author, past=None):
        directory = self.directory
        return Coordinator(directory.store, self.outlet(), author, past, directory.identity)

    def commit(self):
        self.clock[0] += ROLL_MS
        self.coordinator.commit(2)


def test_every_kept_line_can_be_verified_and_forked_and_a_resume_goes_on(tmp_path):
    run = Run(tmp_path, BUNDLE + 40)
    floor = run.directory.output.floor()
    assert floor.place > BUNDLE + 20
    assert len(files(run.directory.path / "output")) < 60
    ledger = read_ledger(run.directory, SimpleNamespace(options=()))
    assert len(ledger.lines) == 2
    for line in ledger.lines:
        needs = list(_output(run.directory, line))
        for need in needs:
            need.check()
        paths = tuple(dict.fromkeys(need.path for need in needs))
        fork = Fork(run.directory, line, ledger.last, paths)
        made = RunDirectory.create(
            tmp_path / "forks", "test", "aligned", {}, fill=partial(fill_fork, fork)
        )
        assert made.output.floor() == floor
        assert read_past(made, run.coordinator.job).published == line.decision.published
        kept = read_sinks(made, {"b": [B]}, "committed")["b"].rows["n"].tolist()
        assert kept == list(range(floor.rows[B], line.decision.chains[B][-1].position))
    check_resumed(run)


def check_resumed(run):
    """Another driver goes on with a run, which stood still for a while."""
    past = read_past(run.directory, run.coordinator.job)
    run.clock[0] += 2 * RETAIN_MS
    run.coordinator = run.take_over("second", past)
    rows = past.chains[B][-1].position
    for _ in range(3):
        run.commit()
    found = rows_of(run.directory.output, [B], "committed")
    kept = [n for batch in found for n in batch["n"].tolist()]
    assert kept == list(range(kept[0], rows + 6))
    assert kept[0] <= rows
    assert read_past(run.directory, run.coordinator.job).published == past.published + 3


def test_a_line_that_is_kept_is_never_undercut_however_old_it_is(tmp_path):
    run = Run(tmp_path, 20)
    run.clock[0] += 100 * RETAIN_MS  # nothing new came for long
    run.coordinator.begin()  # a slot was lost, say
    ledger = read_ledger(run.directory, SimpleNamespace(options=()))
    assert [line.decision.published for line in ledger.lines] == [19, 20]
    assert run.directory.output.floor().place == 19


# The files of one life.


def test_a_life_goes_on_to_another_file_at_a_checkpoint_and_syncs_both(tmp_path, monkeypatch):
    clock, synced = [0], []
    egress = FileOutlet(tmp_path, RETAIN_MS, lambda: clock[0]).open(Life(A, 1, 1), 0)
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.fstat(fd).st_ino))
    for stop in (2, 3):
        egress.append(Batch.of(n=list(range(egress.position, stop))))
        clock[0] += ROLL_MS
    egress.cut()
    before = egress.start_sync()
    egress.append(Batch.of(n=[3]))
    during = egress.start_sync()
    egress.cut()  # the new file is young
    egress.append(Batch.of(n=[4]))
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["a-0.e1.i1.egress", "a-0.e1.i1.r3.egress"]
    synced.clear()
    during.wait()
    during.finish()
    assert {(tmp_path / name).stat().st_ino for name in names} <= {*synced}
    before.wait()
    before.finish()
    assert FileOutlet(tmp_path).publish(1, {A: Extent(egress.file, 0, 4)})
    egress.sync()
    egress.close()
    assert FileOutlet(tmp_path).publish(2, {A: Extent(egress.file, 4, 5)})
    assert readable(tmp_path, A) == [0, 1, 2, 3, 4]
    with pytest.raises(StorageError, match="opened before"):
        FileOutlet(tmp_path).open(Life(A, 1, 1), 0)
    (tmp_path / names[0]).unlink()
    with pytest.raises(ObjectMissing):
        readable(tmp_path, A)
    with pytest.raises(ObjectDamaged, match="no file with row 0"):
        read_sinks_of(tmp_path)


def read_sinks_of(output):
    return [list(_stretch(output, link)) for link in read_chain(output, SINKS)]
