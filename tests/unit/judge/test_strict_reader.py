"""Output as a judge reads it: where each row stands, when it was written, and whether the chain holds."""

import json
import time

import numpy as np
import pytest

from snapline.batch import Batch
from snapline.errors import ObjectDamaged
from snapline.ids import TaskId
from snapline.judge.reader import BrokenChain, read_sinks
from snapline.rundir.directory import RunDirectory
from snapline.rundir.output_rows import POSITION_BITS, position_label, walk_output
from snapline.storage.api import Extent, Life
from snapline.storage.codec import digest_of
from snapline.storage.files.frames import scan

SINKS = {
    "counts": (TaskId("counts/0"), TaskId("counts/1")),
    "late": (TaskId("late/0"), TaskId("late/1")),
}


@pytest.fixture
def directory(tmp_path):
    spec = {"flow": "sst", "protocol": "aligned", "origin_s": time.time() - 100}
    return RunDirectory.create(tmp_path, "sst", "aligned", spec)


def write(directory, task, epoch, start, stop):
    egress = directory.outlet.open(Life(TaskId(task), epoch, 1), start)
    for row in range(start, stop, 2):
        egress.append(Batch.of(n=np.arange(row, min(row + 2, stop))))
    egress.sync()
    return egress.file


def test_rows_are_numbered_per_task_and_stamped_with_the_time_of_their_run(directory):
    first = write(directory, "counts/0", 1, 0, 5)
    again = write(directory, "counts/0", 2, 3, 7)  # a rollback took rows 3 and 4 back
    other = write(directory, "counts/1", 1, 0, 2)
    directory.outlet.publish(
        1, {TaskId("counts/0"): Extent(first, 0, 3), TaskId("counts/1"): Extent(other, 0, 2)}
    )
    directory.outlet.publish(2, {TaskId("counts/0"): Extent(again, 3, 7)})
    public = read_sinks(directory, SINKS, "committed")["counts"].stamped
    assert public["n"].tolist() == [*range(7), 0, 1]
    task_1 = 1 << POSITION_BITS
    assert public["position"].tolist() == [*range(7), task_1, task_1 + 1]
    assert [position_label(p) for p in public["position"][-3:].tolist()] == ["0:6", "1:0", "1:1"]
    assert np.all(abs(public["written"] - 100_000) < 60_000)


def test_all_that_was_written_has_a_position_of_its_own(directory):
    write(directory, "counts/0", 1, 0, 5)
    write(directory, "counts/0", 2, 3, 7)
    all_rows = read_sinks(directory, SINKS, "uncommitted")["counts"].stamped
    assert all_rows["n"].tolist() == [0, 1, 2, 3, 4, 3, 4, 5, 6]
    assert all_rows["position"].tolist() == list(range(9))


def test_a_sink_that_wrote_nothing_has_no_rows(directory):
    write(directory, "counts/0", 1, 0, 5)
    assert len(read_sinks(directory, SINKS, "committed")["late"].rows) == 0


# Chains that somebody has broken.


@pytest.fixture
def published(directory):
    """Three manifests: rows 0-3, 3-6 and 6-8 of one task, in one file."""
    file = write(directory, "counts/0", 1, 0, 8)
    for number, (start, stop) in enumerate([(0, 3), (3, 6), (6, 8)], start=1):
        directory.outlet.publish(number, {TaskId("counts/0"): Extent(file, start, stop)})
    assert read_sinks(directory, SINKS, "committed")["counts"].rows["n"].tolist() == [*range(8)]
    return directory


def manifest(directory, place):
    return directory.path / "output" / "manifests" / f"{place}.obj"


def forge(directory, place, number, extents):
    """A manifest whose bytes are sound: only its content is wrong."""
    data = json.dumps({"number": number, "extents": extents}).encode()
    manifest(directory, place).write_bytes(data + bytes.fromhex(digest_of(data)))


FILE = "counts-0.e1.i1"


@pytest.mark.parametrize(
    ("place", "number", "extents", "said"),
    [
        (2, 2, {"counts/0": [FILE, 2, 6]}, "overlap"),
        (2, 2, {"counts/0": [FILE, 4, 6]}, "leave a gap"),
        (2, 2, {"counts/0": [FILE, 3, 5]}, "leave a gap"),  # which the third finds
        (3, 3, {"counts/0": [FILE, 6, 4]}, "end before they begin"),
        (4, 3, {"counts/0": [FILE, 6, 8]}, "in the place of manifest 4 lies number 3"),
        (2, 3, {"counts/0": [FILE, 6, 8]}, "in the place of manifest 2 lies number 3"),
        (4, 4, {"counts/1": [FILE, 0, 8]}, "a file of somebody else"),
        (4, 4, {"counts/0": ["../counts-0.e1.i1", 8, 8]}, "a file of somebody else"),
        (4, 4, {"sums/0": ["sums-0.e1.i1", 0, 0]}, "no such sink"),
    ],
)
def test_a_link_that_does_not_hold_is_named(published, place, number, extents, said):
    forge(published, place, number, extents)
    with pytest.raises(BrokenChain, match=said):
        read_sinks(published, SINKS, "committed")


ROWS = {"counts/0": [FILE, 6, 8]}
NO_MANIFESTS = [
    *(json.dumps({"number": number, "extents": ROWS}) for number in (3.0, 3.5, "3", None, True)),
    *(json.dumps({"number": 3, "extents": extents}) for extents in (None, 3, "ab", [["a", 1]])),
    *(
        json.dumps({"number": 3, "extents": {"counts/0": extent}})
        for extent in (
            *([FILE, 6.5, 8.5], [FILE, 6, 8.0], [FILE, 6, float("inf")], [FILE, 6, float("nan")]),
            *([FILE, "6", 8], [FILE, 6, None], [FILE, 6], [FILE, 6, 8, 9], None, "abc", 3),
            *([None, 6, 8], [f"{FILE}\0", 6, 8], [True, 6, 8], [FILE, False, 8]),
        )
    ),
    json.dumps({"number": 3, "extents": ROWS})[:-1] + ', "extents": {}}',
    '{"number": 3, "extents": {"counts/0": ["x", 0, 9], "counts/0": ["counts-0.e1.i1", 6, 8]}}',
    *("[" * 100_000, "", "[]", "3"),
]


@pytest.mark.parametrize("content", NO_MANIFESTS)
def test_what_is_no_manifest_word_for_word_is_damage(published, content):
    data = content.encode()
    manifest(published, 3).write_bytes(data + bytes.fromhex(digest_of(data)))
    with pytest.raises(ObjectDamaged, match="is no manifest"):
        read_sinks(published, SINKS, "committed")


@pytest.mark.parametrize("content", ["[" * 100_000, '{"number": 3, "extents": null}', "[]", "{}"])
def test_who_reads_output_without_judging_it_says_what_is_damaged(published, content):
    data = content.encode()
    manifest(published, 3).write_bytes(data + bytes.fromhex(digest_of(data)))
    with pytest.raises(ObjectDamaged, match=r"3\.obj is not what was published"):
        list(walk_output(published, "counts", "committed"))


@pytest.mark.parametrize("place", [1, 2])
def test_a_manifest_that_is_gone_is_missed(published, place):
    manifest(published, place).unlink()
    with pytest.raises(BrokenChain, match=f"manifest {place} is gone"):
        read_sinks(published, SINKS, "committed")


def test_a_file_that_was_left_is_left_for_good(published):
    write(published, "counts/0", 2, 8, 9)
    forge(published, 4, 4, {"counts/0": ["counts-0.e2.i1", 8, 9]})
    forge(published, 5, 5, {"counts/0": [FILE, 9, 9]})
    with pytest.raises(BrokenChain, match="left before"):
        read_sinks(published, SINKS, "committed")


def test_rows_that_were_never_written_are_missed(published):
    forge(published, 3, 3, {"counts/0": [FILE, 6, 20]})
    with pytest.raises(ObjectDamaged, match="no whole rows behind row 8 of 20"):
        read_sinks(published, SINKS, "committed")


@pytest.mark.parametrize("view", ["committed", "uncommitted"])
def test_a_flipped_byte_is_damage(published, view):
    path = published.path / "output" / f"{FILE}.egress"
    content = bytearray(path.read_bytes())
    content[60] ^= 1
    path.write_bytes(content)
    with pytest.raises(ObjectDamaged):
        read_sinks(published, SINKS, view)


def test_whichever_byte_is_flipped_the_public_rows_stay_the_same_or_there_is_an_error(directory):
    """Behind the last public row stand a mark of the last sync, and rows that nobody published: only there
    a flipped byte may pass, because no reader of the output would ever see it."""
    file = write(directory, "counts/0", 1, 0, 8)
    directory.outlet.publish(1, {TaskId("counts/0"): Extent(file, 0, 5)})
    path = directory.path / "output" / f"{file}.egress"
    content = path.read_bytes()
    unpublished = scan(path).frames[3][0]  # two rows in each frame, and five are public
    public = list(read_sinks(directory, SINKS, "committed")["counts"].stamped.rows())
    for at in range(len(content)):
        path.write_bytes(content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :])
        if at < unpublished:
            with pytest.raises(ObjectDamaged):
                read_sinks(directory, SINKS, "committed")
        else:
            assert (
                list(read_sinks(directory, SINKS, "committed")["counts"].stamped.rows()) == public
            ), at


@pytest.mark.parametrize("cut", [0, 1, 40])
def test_a_manifest_of_other_bytes_is_damage(published, cut):
    path = manifest(published, 2)
    path.write_bytes(path.read_bytes()[:-cut] if cut else b"")
    with pytest.raises(ObjectDamaged):
        read_sinks(published, SINKS, "committed")


def test_the_draft_of_a_publisher_that_was_killed_is_no_manifest(published):
    (manifest(published, 1).parent / ".new-abc").write_bytes(b"half")
    assert len(read_sinks(published, SINKS, "committed")["counts"].rows) == 8
