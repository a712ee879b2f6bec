"""A journal, told in a few lines."""

from rich.text import Text

from snapline.batch import Batch
from snapline.cli.terminal.story import told
from snapline.core.effects import Commit, Rollback, Scope
from snapline.core.events import Quiet
from snapline.core.messages import Message, RecoveryLine
from snapline.ids import ChannelId, TaskId, first_checkpoint
from snapline.journal.entry import COORDINATOR, Handled, Happened
from snapline.journal.fault_happenings import ConnectionCut, ProcessKilled, SnapshotDamaged
from snapline.journal.happenings import (
    JobFinished,
    JobRunning,
    JobStopped,
    MessageReplayed,
    SlotLost,
)

A, B = TaskId("a/0"), TaskId("b/1")
FIRST = first_checkpoint(1)


def happened(at_us, actor, what):
    return Happened(at_us, actor, 1, what)


def message(seq):
    return Message(ChannelId("a/0>b/1"), seq, 1, Batch({}, 1))


def handled(at_us, *effects):
    return Handled(at_us, COORDINATOR, 1, 0, Quiet(), effects)


def line(a, b):
    return RecoveryLine({A: a, B: b})


def story(*entries):
    return [" ".join(Text.from_markup(text).plain.split()) for text in told(entries)]


def test_a_crash_and_what_was_done_about_it():
    assert story(
        happened(0, COORDINATOR, JobRunning()),
        handled(100_000, Commit(line(FIRST, FIRST))),
        handled(200_000, Commit(line(FIRST + 1, FIRST + 1))),
        happened(812_400, "slot/1", ProcessKilled("kill slot=1 step=9", 1)),
        happened(900_000, COORDINATOR, SlotLost(1, 1)),
        handled(900_000, Rollback(line(FIRST + 2, FIRST + 1))),
        happened(950_000, "a/0", MessageReplayed(message(3))),
        happened(950_000, "a/0", MessageReplayed(message(4))),
        happened(1_500_000, COORDINATOR, JobFinished()),
    ) == [
        "0 ms all slots run (epoch 1)",
        "lines committed: 2",
        "812 ms slot/1 is killed (kill slot=1 step=9)",
        "900 ms the coordinator gives up slot/1 as lost",
        "900 ms rollback: 1 task to checkpoint 1.3, 1 to 1.2",
        "messages replayed: 2",
        "1,500 ms all input is processed and all output published",
    ]


def test_a_line_on_which_all_agree_is_told_once():
    assert story(handled(0, Rollback(line(FIRST, FIRST)))) == [
        "0 ms rollback: every task to checkpoint 1.1"
    ]


def test_a_restart_of_the_lost_alone_goes_to_the_beginning():
    assert story(handled(0, Rollback(line(0, 0), Scope.LOST))) == [
        "0 ms rollback: every lost task to the beginning"
    ]


def test_what_a_fault_concerns_is_named_as_people_know_it():
    assert story(
        happened(0, "slot/1", ConnectionCut(fault=None, others=(2,))),
        happened(0, "slot/1", ConnectionCut(fault=None, others=(0, None))),
        happened(0, "a/0", SnapshotDamaged(fault=None, checkpoint=FIRST + 1)),
    ) == [
        "0 ms slot/1 is cut off from slot/2",
        "0 ms slot/1 is cut off from slot/0, the coordinator",
        "0 ms the stored checkpoint 1.2 of a/0 is damaged",
    ]


def test_words_that_look_like_markup_do_no_harm():
    assert story(
        happened(0, COORDINATOR, JobStopped(problem="[red] is {odd}")),
    ) == ["0 ms the coordinator stops: [red] is {odd}"]
