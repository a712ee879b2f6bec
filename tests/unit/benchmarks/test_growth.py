"""What `growth` calls a slow second, and what it says happened in it."""

from benchmarks.endurance import growth
from benchmarks.endurance.flat_figures import Watch
from benchmarks.endurance.slot_probe import Line
from snapline.metrics.second import Second

HELD = (100, 101, 202, 203)


def moments():
    made = [
        Second(at_s, p50_ms=1.0, p99_ms=p99, checkpoints=2 * at_s, checkpoint_us=(9_000, 40_000))
        for at_s, p99 in enumerate((500.0, 20.0, 300.0, None))
    ]
    slots = {
        name: [
            Line(at_s + 0.9, rss=1_000, state=90, held=held, longest_us=still_us, full_bytes=at_s)
            for at_s, held in enumerate(HELD)
        ]
        for name, still_us in (("process-0", 2_000.0), ("process-1", 7_000.0))
    }
    return growth.moments_of(Watch(slots), made)


def test_seconds_above_the_limit_are_found_without_the_first_and_those_without_output():
    assert [each.at_s for each in growth.above(moments(), 100, 0)] == [0, 2]
    assert [each.at_s for each in growth.above(moments(), 100, 1)] == [2]
    assert not growth.above(moments(), 300, 1)


def test_a_second_says_what_happened_in_it():
    before, slow = moments()[1:3]
    assert (before.grew, slow.grew) == (0, 2 * 101)
    assert (slow.checkpoints, slow.checkpoint_ms) == (2, 40.0)
    assert (slow.state, slow.rss, slow.full) == (180, 2_000, 4)
    assert slow.still_ms == 7.0


def test_a_row_has_a_cell_for_every_column():
    head, _, *rows = growth.moment_table(moments())
    assert {line.count("|") for line in rows} == {head.count("|")}
    assert "| - |" in rows[-1]


def test_a_second_in_which_a_slot_said_nothing_is_compared_with_the_one_before():
    made = [Second(at_s) for at_s in range(3)]
    lines = [Line(0.5, held=100, state=5), Line(2.5, held=200, state=6)]
    found = growth.moments_of(Watch({"process-0": lines}), made)
    assert [each.grew for each in found] == [0, 0, 100]
    assert [each.state for each in found] == [5, 5, 6]


def test_growth_in_the_second_before_or_after_explains_a_slow_one():
    found = moments()  # they grew in second 2
    slow = growth.above(found, 10, 0)
    assert [each.at_s for each in slow] == [0, 1, 2]
    assert [each.at_s for each in growth.by_growth(found, slow)] == [1, 2]
