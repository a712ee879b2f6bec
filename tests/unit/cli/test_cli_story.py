"""A journal, told in a few lines."""

from rich.text import Text

from snapline.cli_story import told
from snapline.core.effects import Commit, Rollback, Scope
from snapline.core.events import Quiet
from snapline.core.messages import RecoveryLine
from snapline.ids import TaskId, first_checkpoint
from snapline.journal.entry import COORDINATOR, Handled, Happened

A, B = TaskId("a/0"), TaskId("b/1")
FIRST = first_checkpoint(1)


def happened(at_us, actor, what, **detail):
    return Happened(at_us, actor, 1, what, detail)


def handled(at_us, *effects):
    return Handled(at_us, COORDINATOR, 1, 0, Quiet(), effects)


def line(a, b):
    return RecoveryLine({A: a, B: b})


def story(*entries):
    return [" ".join(Text.from_markup(text).plain.split()) for text in told(entries)]


def test_a_crash_and_what_was_done_about_it():
    assert story(
        happened(0, COORDINATOR, "running"),
        handled(100_000, Commit(line(FIRST, FIRST))),
        handled(200_000, Commit(line(FIRST + 1, FIRST + 1))),
        happened(812_400, "slot/1", "killed"),
        happened(900_000, COORDINATOR, "lost", slot=1, incarnation=1),
        handled(900_000, Rollback(line(FIRST + 2, FIRST + 1))),
        happened(950_000, "a/0", "replayed", channel="a/0>b/1", seq=3),
        happened(950_000, "a/0", "replayed", channel="a/0>b/1", seq=4),
        happened(1_500_000, COORDINATOR, "finished"),
    ) == [
        "0 ms all tasks run",
        "lines committed: 2",
        "812 ms slot/1 is killed",
        "900 ms coordinator gives up a slot as lost, slot 1, incarnation 1",
        "900 ms rollback: every task to the line 1.3 (1x), 1.2 (1x)",
        "messages replayed: 2",
        "1,500 ms all input is processed and all output published",
    ]


def test_a_line_on_which_all_agree_is_told_once():
    assert story(handled(0, Rollback(line(FIRST, FIRST)))) == [
        "0 ms rollback: every task to the line 1.1"
    ]


def test_a_restart_of_the_lost_alone_goes_to_the_beginning():
    assert story(handled(0, Rollback(line(0, 0), Scope.LOST))) == [
        "0 ms rollback: the lost tasks to the beginning"
    ]


def test_words_that_look_like_markup_are_kept():
    assert story(happened(0, "slot/1", "damaged", object="[red]")) == [
        "0 ms a stored object is damaged, object [red]"
    ]
