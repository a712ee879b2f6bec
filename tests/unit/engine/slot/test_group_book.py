"""Groups on their way from the capture to a checkpoint that counts and refers to them."""

from engine_fakes import A, ShellSpy, meta
from snapline.batch import Batch
from snapline.core.effects import Snapshot
from snapline.dataflow.operators.operator import Capture, Groups
from snapline.engine.control import NotStored, Stored
from snapline.engine.groups.index import groups_of_chain
from snapline.engine.shell import RetryAlarm, Ticket
from snapline.engine.slot.checkpoints import CheckpointWriter
from snapline.storage.api import Life
from snapline.storage.codec import decode_snapshot

LIFE = Life(A, 3, 2)


class Scene:
    """The writer of a task whose state is in groups, and a store that answers when it is told to."""

    def __init__(self):
        self.shell = ShellSpy()
        self.writer = CheckpointWriter(LIFE, self.shell, object(), None, 8, 30)
        self.next = Groups({})
        self.objects, self.asked, self.reports, self.deleted = {}, [], [], []

    def capture(self, *, full):
        return Capture(full, {}, groups={"op/rows": self.next})

    def meta(self, effect):
        return meta("a", effect.checkpoint, epoch=3, incarnation=2)

    def take(self, number, *written, dropped=(), **snapshot):
        batches = {n: Batch.of(n=list(range(n + 1))) for n in written}
        self.next = Groups(batches, dropped)
        self.writer.take(self, Snapshot(number, **snapshot))
        self.look()

    def look(self):
        for call in self.shell.taken():
            if call[0] == "store":
                self.asked.append((call[1], call[2], call[3]))
            elif call[0] == "sync":
                self.asked.append((call[1], None, None))
            elif call[0] == "report":
                self.reports.append(call[1])
            elif call[0] == "delete":
                self.deleted.append(call[1])

    def answer(self, *kinds):
        """Let all calls of these kinds succeed that wait now."""
        waiting, self.asked = self.asked, []
        for ticket, key, data in waiting:
            if ticket.kind not in kinds:
                self.asked.append((ticket, key, data))
                continue
            if key is not None:
                self.objects[key] = bytes(data())
            self.writer.done(ticket)
        self.look()

    def kinds(self):
        return sorted({ticket.kind for ticket, _, _ in self.asked})

    def finish(self):
        self.answer("group")
        self.answer("snapshot", "log")
        return self.reports[-1]


def names(*numbers, checkpoint):
    return tuple(f"snapshot/{LIFE.name}/{checkpoint}.op:rows.{n}" for n in numbers)


def test_a_snapshot_is_stored_after_its_groups_and_has_their_digests():
    scene = Scene()
    scene.take(1, 0, 1)
    assert scene.kinds() == ["group", "log"]
    scene.answer("group")
    assert scene.kinds() == ["log", "snapshot"]
    scene.answer("snapshot", "log")
    [report] = scene.reports
    assert (report.added, report.dropped) == (names(0, 1, checkpoint=1), ())
    assert report.meta.groups == 2
    assert report.meta.bytes == sum(map(len, scene.objects.values()))
    index = groups_of_chain([decode_snapshot(scene.objects[f"snapshot/{LIFE.name}/1"])])
    for group in index.values():
        assert decode_snapshot(scene.objects[group.key]).parts["op/rows"].length == group.rows
        assert len(group.digest) == 32


def test_a_clean_group_is_not_written_again_and_a_new_version_has_another_name():
    scene = Scene()
    scene.take(1, 0, 1)
    scene.finish()
    scene.take(2, 1, 2, dropped=(0,))
    report = scene.finish()
    assert report.added == names(1, 2, checkpoint=2)
    assert sorted(report.dropped) == sorted(names(0, 1, checkpoint=1))
    chain = [decode_snapshot(scene.objects[f"snapshot/{LIFE.name}/{n}"]) for n in (1, 2)]
    assert not chain[1].full, "its index has what changed"
    assert tuple(g.key for g in groups_of_chain(chain).values()) == names(1, 2, checkpoint=2)


def test_groups_of_an_abandoned_checkpoint_belong_to_the_next_one():
    scene = Scene()
    scene.take(1, 0, open=True)
    scene.writer.abandon(1)
    scene.take(2, 1)
    report = scene.finish()
    assert report.added == (*names(0, checkpoint=1), *names(1, checkpoint=2))
    index = groups_of_chain([decode_snapshot(scene.objects[f"snapshot/{LIFE.name}/2"])])
    assert len(index) == 2, "it is full, and has both"


def test_what_nobody_was_told_of_is_deleted_when_the_epoch_ends():
    scene = Scene()
    scene.take(1, 0)
    scene.finish()
    scene.take(2, 1)
    scene.writer.forget()
    scene.look()
    assert set(names(1, checkpoint=2)) <= set(scene.deleted)
    assert not set(names(0, checkpoint=1)) & set(scene.deleted), "a checkpoint refers to it"


def test_a_group_that_could_not_be_stored_is_stored_again():
    scene = Scene()
    scene.take(1, 0)
    ticket = Ticket("group", 3, A, 1)
    scene.writer.failed(ticket)
    calls = scene.shell.taken()
    assert ("report", NotStored(3, A, 1)) in calls
    assert any(call[0] == "set_alarm" and call[1] == RetryAlarm(ticket) for call in calls)
    scene.writer.retry(ticket)
    scene.look()
    assert [t.kind for t, _, _ in scene.asked].count("group") == 2
    assert isinstance(scene.finish(), Stored)
