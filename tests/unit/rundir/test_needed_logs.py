"""Which messages of logs a kept line needs, in a run directory that was written by hand.

`a` sends to `b`. In epoch 1 it logs messages 1 to 9, of which 4 to 9 are undone by a rollback; in epoch 2
it logs 4 to 9. The line of epoch 1 has 2 and 3 in flight, the line of epoch 2 has 3 to 8.
"""

import os
import random
from dataclasses import asdict

import pytest

from snapline.batch import Batch
from snapline.core.messages import CheckpointMeta, Message
from snapline.engine.coordinator.ledger import Decision, decision_key, encode
from snapline.engine.slot.checkpoints import key_of
from snapline.ids import ChannelId, TaskId, first_checkpoint
from snapline.rundir.directory import RunDirectory
from snapline.rundir.lines.kept import kept_lines
from snapline.rundir.lines.verify import verify
from snapline.rundir.spec import Spec
from snapline.storage.api import Life
from snapline.storage.codec import digest_of

A, B, AB = TaskId("a/0"), TaskId("b/0"), ChannelId("a/0>b/0")
INITIAL = {A: (), B: ()}
FIRST, SECOND = (f"logs/a-0.e{epoch}.i1.000000.log" for epoch in (1, 2))


@pytest.fixture(autouse=True)
def no_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda fd: None)


@pytest.fixture
def empty(tmp_path):
    asked = asdict(Spec("q12", protocol="uncoordinated", slots=1))
    return RunDirectory.create(tmp_path, "q12", "uncoordinated", asked)


@pytest.fixture
def directory(empty):
    directory = empty
    for epoch, seqs in ((1, range(1, 10)), (2, range(4, 10))):
        log = directory.storage.logs.open(Life(A, epoch, 1))
        for seq in seqs:
            log.append(Message(AB, seq, epoch, Batch.of(n=list(range(seq)))))
        log.sync()
        log.close()
    first, second = line(directory, 1, 3, 1), line(directory, 2, 8, 2)
    write(directory, (1, INITIAL), (1, first), (2, first), (2, second))
    return directory


def line(directory, epoch, sent, received):
    chains = {}
    for task, counters in ((A, {"sent": {AB: sent}}), (B, {"received": {AB: received}})):
        data = f"the state of {task} in epoch {epoch}".encode()
        meta = CheckpointMeta(
            task,
            first_checkpoint(epoch),
            epoch=epoch,
            incarnation=1,
            bytes=len(data),
            digest=digest_of(data),
            **counters,
        )
        directory.store.put(key_of(meta), data)
        chains[task] = (meta,)
    return chains


def write(directory, *decisions):
    before = ""
    for number, (epoch, chains) in enumerate(decisions, 1):
        decision = Decision(
            number=number,
            author="me",
            fingerprint="graph-input",
            epoch=epoch,
            incarnations={0: 1},
            whole=number == 1,
            chains=chains,
            memo=b"",
            manifests=(),
            published=0,
            run=directory.identity,
            before=before,
        )
        data = encode(decision)
        directory.store.put(decision_key(number), data)
        before = digest_of(data)


def accused(directory):
    return {damage.file: damage.needed_for for damage in verify(directory).damages}


def test_the_lines_and_all_that_they_need(directory):
    verified = verify(directory)
    assert (verified.lines, verified.damages) == ((2, 4), ())
    logs = [file for file in verified.files if file.startswith("logs")]
    assert logs == [FIRST, SECOND]
    assert [line.decision.number for line in kept_lines(directory)] == [3, 4]


@pytest.mark.parametrize("file", [FIRST, SECOND])
@pytest.mark.parametrize("indexed", [True, False])
def test_a_log_that_is_gone_is_missed_although_undone_messages_have_its_numbers(
    directory, file, indexed
):
    (directory.path / file).unlink()
    if not indexed:
        (directory.path / file).with_suffix(".index").unlink()
    # Without the index nobody knows the name of the file, but what is found in its place is not right.
    blamed = file if indexed else {FIRST: "logs", SECOND: FIRST}[file]
    assert set(accused(directory)) == {blamed}


@pytest.mark.parametrize("file", [FIRST, SECOND])
def test_a_log_that_was_cut_or_changed_anywhere_is_named(directory, file):
    path, rng = directory.path / file, random.Random(file)
    content = path.read_bytes()
    durable = (
        content.rindex(b"snapline: synced through") - 8
    )  # the last mark vouches for all before it
    for _ in range(20):
        path.write_bytes(content[: rng.randrange(durable)])
        assert set(accused(directory)) == {file}
        changed = bytearray(content)
        changed[rng.randrange(durable)] ^= 1 << rng.randrange(8)
        path.write_bytes(changed)
        assert set(accused(directory)) == {file}
    path.write_bytes(content)
    assert accused(directory) == {}


def test_a_directory_in_the_place_of_a_log_is_named(directory):
    (directory.path / SECOND).unlink()
    (directory.path / SECOND).mkdir()
    [damage] = verify(directory).damages
    assert str(directory.path / SECOND) in damage.problem


def test_messages_that_no_line_needs_may_be_gone(directory):
    """A torn tail behind the last mark, and the indexes."""
    for file in (FIRST, SECOND):
        with (directory.path / file).open("ab") as log:
            log.write(b"torn")
        (directory.path / file).with_suffix(".index").unlink()
    assert accused(directory) == {}


def test_a_line_behind_which_the_run_went_back_is_not_kept(empty):
    first, second = line(empty, 1, 3, 1), line(empty, 2, 8, 2)
    write(empty, (1, INITIAL), (1, first), (1, second), (2, first))
    assert [each.number for each in kept_lines(empty)] == [2]
