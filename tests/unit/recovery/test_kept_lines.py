"""Which two lines are kept whole while a line moves, task by task or all at once."""

from engine_fakes import line
from snapline.recovery.kept_lines import KeptLines, is_ahead, is_behind

NOWHERE = line(a=0, b=0)


def test_a_line_is_ahead_only_when_every_task_has_moved():
    assert is_ahead(line(a=2, b=2), line(a=1, b=1))
    assert not is_ahead(line(a=2, b=1), line(a=1, b=1))
    assert not is_ahead(line(a=1, b=1), line(a=1, b=1))


def test_a_line_is_behind_when_one_task_would_go_back():
    assert is_behind(line(a=1, b=9), line(a=2, b=2))
    assert not is_behind(line(a=2, b=2), line(a=2, b=2))


def test_after_rounds_the_last_two_lines_are_kept():
    kept = KeptLines(NOWHERE)
    assert kept.advance(line(a=1, b=1))
    assert (kept.older, kept.newer) == (NOWHERE, line(a=1, b=1))
    assert kept.advance(line(a=2, b=2))
    assert (kept.older, kept.newer) == (line(a=1, b=1), line(a=2, b=2))


def test_where_the_line_moves_task_by_task_the_kept_lines_share_no_checkpoint():
    kept = KeptLines(NOWHERE)
    kept.advance(line(a=1, b=1))
    assert not kept.advance(line(a=2, b=1))
    assert not kept.advance(line(a=3, b=1))
    assert kept.advance(line(a=3, b=2))
    assert (kept.older, kept.newer) == (line(a=1, b=1), line(a=3, b=2))


def test_going_back_to_the_older_line_leaves_only_that_one():
    kept = KeptLines(NOWHERE)
    kept.advance(line(a=1, b=1))
    kept.advance(line(a=2, b=2))
    kept.go_back(line(a=1, b=1))
    assert (kept.older, kept.newer) == (line(a=1, b=1), line(a=1, b=1))


def test_going_back_behind_both_lines_keeps_the_line_that_is_used():
    kept = KeptLines(NOWHERE)
    kept.advance(line(a=1, b=1))
    kept.advance(line(a=2, b=2))
    kept.go_back(line(a=0, b=1))
    assert (kept.older, kept.newer) == (line(a=0, b=1), line(a=0, b=1))


def test_going_back_from_beyond_the_newer_line_to_it_changes_nothing():
    kept = KeptLines(NOWHERE)
    kept.advance(line(a=1, b=1))
    kept.advance(line(a=2, b=2))
    kept.advance(line(a=3, b=2))
    kept.go_back(line(a=2, b=2))
    assert (kept.older, kept.newer) == (line(a=1, b=1), line(a=2, b=2))


def test_as_many_lines_are_kept_as_were_asked_for():
    kept, alone = KeptLines(NOWHERE, 3), KeptLines(NOWHERE, 1)
    for number in (1, 2, 3, 4):
        kept.advance(line(a=number, b=number))
        alone.advance(line(a=number, b=number))
    assert (kept.older, kept.newer) == (line(a=2, b=2), line(a=4, b=4))
    assert [kept.before(steps).checkpoints["a"] for steps in (0, 1, 2, 3)] == [4, 3, 2, 2]
    assert alone.older == alone.newer == line(a=4, b=4)
    kept.go_back(line(a=3, b=3))
    assert (kept.older, kept.newer) == (line(a=2, b=2), line(a=3, b=3))
