"""What every outlet promises that keeps output for a while only."""

import pytest

from snapline.batch import Batch
from snapline.errors import ObjectMissing, RowsDeleted
from snapline.ids import TaskId, task_id
from snapline.storage.api import Extent, Life, rows_of
from snapline.storage.files.outlet import FileOutlet
from snapline.storage.files.output import FileOutput
from snapline.storage.floor import Floor
from snapline.storage.memory_output import MemoryOutlet

SINK = task_id("out", 0)
RETAIN_MS = 800


class Kept:
    """An outlet with a clock, and a life that writes."""

    def __init__(self, form, directory):
        self.now_ms, self.number = 0, 0
        self.form, self.directory = form, directory
        self.outlet = self.reader = self.another()
        if form == "files":
            self.reader = FileOutput(directory)
        self.begin(1, 0)

    def another(self):
        """The outlet as another process would open it."""
        if self.form == "files":
            return FileOutlet(self.directory, RETAIN_MS, lambda: self.now_ms)
        return getattr(self, "outlet", None) or MemoryOutlet(RETAIN_MS, lambda: self.now_ms)

    def begin(self, epoch, position):
        self.egress = self.outlet.open(Life(SINK, epoch, epoch), position)
        self.outlet.sweep(epoch, (), written=False)

    def publish(self, manifests=1):
        """So many manifests of two rows, 100 ms apart."""
        for _ in range(manifests):
            self.now_ms += 100
            first = self.egress.position
            self.egress.append(Batch.of(n=[first, first + 1]))
            self.egress.cut()
            self.egress.sync()
            self.number += 1
            assert self.outlet.publish(self.number, self.extents(first, first + 2))

    def extents(self, start, stop):
        return {SINK: Extent(self.egress.file, start, stop)}

    @property
    def rows(self):
        found = rows_of(self.reader, [SINK], "committed")
        return [n for batch in found for n in batch["n"].tolist()]


@pytest.fixture(params=("memory", "files"))
def kept(request, tmp_path):
    return Kept(request.param, tmp_path / "output")


def test_what_is_old_enough_is_deleted_up_to_a_manifest_and_all_else_stays(kept):
    kept.publish(20)
    kept.outlet.compact(20)
    assert kept.reader.floor() == Floor(12, 12, {SINK: 24}, 1_200)
    assert kept.rows == list(range(24, 40))
    kept.now_ms += 10_000
    kept.outlet.compact(15)
    assert (kept.reader.floor().place, kept.reader.published()) == (15, 20)
    assert kept.rows == list(range(30, 40))
    kept.publish()
    assert kept.rows == list(range(30, 42))


def test_what_was_deleted_is_never_taken_for_what_is_yet_to_come(kept):
    kept.publish(4)
    [piece] = kept.reader.pieces_between(SINK, 0, 2)
    follower = kept.reader.follow()
    assert len(list(follower.published())) == 4
    late = kept.reader.follow()
    kept.publish(16)
    kept.outlet.compact(20)
    with pytest.raises(RowsDeleted, match="manifests 4 to 12 were deleted"):
        kept.reader.pieces_between(SINK, 3, 20)
    with pytest.raises(RowsDeleted, match="rows 0 to 24 of out/0 were deleted"):
        list(kept.reader.read(piece))
    for reader in (follower, late):
        with pytest.raises(RowsDeleted):
            list(reader.published())
    with pytest.raises(ObjectMissing, match="manifest 21 is not public"):
        kept.reader.pieces_between(SINK, 12, 21)
    assert [p[1:] for p in kept.reader.pieces_between(SINK, 12, 20)] == [(24, 40)]


def test_to_publish_again_what_was_deleted_changes_nothing(kept):
    kept.publish(20)
    kept.outlet.compact(20)
    assert kept.outlet.publish(3, kept.extents(4, 6))
    assert kept.outlet.last_published() == 20
    assert kept.rows == list(range(24, 40))


def test_what_is_left_is_held_against_what_was_decided(kept):
    kept.publish(20)
    last = kept.extents(38, 40)
    kept.outlet.compact(20)
    kept.another().check({20: last}, 20, {SINK: 40})
    for through, rows in ((20, 38), (21, 40), (11, 22)):
        with pytest.raises(Exception, match="manifest"):
            kept.another().check({}, through, {SINK: rows})
    kept.now_ms += 10_000
    kept.outlet.compact(20)
    kept.another().check({20: last}, 20, {SINK: 40})


def test_a_past_life_goes_when_its_rows_do_and_not_before(kept):
    kept.publish(3)
    past = kept.egress.file
    kept.begin(2, 6)
    kept.publish(3)
    assert kept.rows == list(range(12))
    kept.now_ms += 500
    kept.outlet.compact(6)
    assert (kept.reader.floor().place, kept.rows) == (3, list(range(6, 12)))
    written = {piece.file for piece in kept.reader.pieces(SINK, "uncommitted")}
    assert written == {kept.egress.file} != {past}
    assert kept.reader.tasks() == [TaskId("out/0")]
