"""Every cause, by the smallest output that has it."""

from dataclasses import replace

import pytest

from snapline.batch import Batch, Words
from snapline.core.guarantee import Guarantee
from snapline.errors import UsageError
from snapline.validate.causes import Cause
from snapline.validate.check import judge
from snapline.validate.judged import PROMISES, Judged, Unjudged, Witness

# 1, 2 and 11 belong to (7, 0), 3 and 13 to (7, 100), 4 and 14 to (8, 100); from 10 on they are POSTs
INPUTS = Batch.of(
    id=[1, 2, 3, 4, 11, 13, 14],
    time=[0, 99, 100, 150, 20, 199, 100],
    resource=[7, 7, 7, 8, 7, 7, 8],
    post=[False] * 4 + [True] * 3,
)
RIGHT = [(7, 0, [1, 2], [11]), (7, 100, [3], [13]), (8, 100, [4], [14])]


def output(rows, **counts):
    resource, window, gets, posts = zip(*rows, strict=True)
    table = Batch.of(resource=resource, window=window, get_ids=gets, post_ids=posts)
    columns = {"gets": [len(ids) for ids in gets], "posts": [len(ids) for ids in posts], **counts}
    return Batch({**table.columns, **Batch.of(**columns).columns})


def judged(rows, late=(), **counts):
    return judge(INPUTS, output(rows, **counts) if rows else None, Batch.of(id=late), 100)


def only(verdict, cause, count=1, **witness):
    assert dict(verdict.causes) == {cause: count}
    found = verdict.witnesses[cause]
    assert found == Witness(cause, **witness)
    assert verdict.leading is cause


def test_a_right_output_is_fine_in_any_order():
    verdict = judged([RIGHT[2], (7, 0, [2, 1], [11]), RIGHT[1]])
    assert verdict == Judged(7, 3, 0, 0, 0, 7, 7, 0)
    assert {verdict.kept(level) for level in PROMISES} == {"yes"}
    assert verdict.reliability == 100.0


def test_a_late_event_is_as_good_as_a_windowed_one():
    verdict = judged([(7, 0, [1], [11]), *RIGHT[1:]], late=[2])
    assert verdict == Judged(7, 3, 1, 0, 0, 7, 6, 1)


def test_an_output_in_two_parts_is_split_and_no_guarantee_is_kept():
    """Added up the parts are right, but each of them is a wrong count."""
    verdict = judged([(7, 0, [1], []), *RIGHT[1:], (7, 0, [2], [11])])
    only(verdict, Cause.SPLIT, resource=7, window=0, id=2, position=0, other=3)
    assert {verdict.kept(level) for level in PROMISES} == {"no"}
    assert (verdict.reliable, verdict.counted, verdict.lost, verdict.repeated) == (4, 7, 0, 0)


def test_parts_beside_a_whole_output_are_duplicates_of_it():
    """As of a system that puts out a window again when it knows more: at least once it was right."""
    verdict = judged([(7, 0, [1], []), (7, 0, [2, 1], [11]), *RIGHT[1:]])
    only(verdict, Cause.DUPLICATE, resource=7, window=0, id=1, position=1, other=0)
    assert verdict.kept(Guarantee.AT_LEAST_ONCE) == "yes"


@pytest.mark.parametrize(
    ("rows", "causes"),
    [
        ([(7, 0, [1, 2], []), (7, 0, [2], [11])], {Cause.DUPLICATE: 1, Cause.SPLIT: 1}),
        ([(7, 0, [1, 1], []), (7, 0, [2], [11])], {Cause.TWICE_INSIDE: 1, Cause.SPLIT: 1}),
        ([(7, 0, [1], []), (7, 0, [2], [])], {Cause.SPLIT: 1, Cause.INCOMPLETE: 1}),
        ([(7, 0, [1, 99], []), (7, 0, [2], [11, 98])], {Cause.INVENTED: 2, Cause.SPLIT: 1}),
        ([(7, 0, [1, 2], [11]), (7, 0, [], [])], {Cause.INVENTED: 1}),
    ],
)
def test_what_is_wrong_with_parts_is_named_beside_the_split(rows, causes):
    verdict = judged([*rows, *RIGHT[1:]])
    assert dict(verdict.causes) == causes
    if Cause.SPLIT in causes:
        assert {verdict.kept(level) for level in PROMISES} == {"no"}


def test_of_an_incomplete_output_a_whole_row_may_yet_come_at_least_once():
    parts = output([(7, 0, [1], []), (7, 0, [2], [11]), *RIGHT[1:]])
    verdict = judge(INPUTS, parts, None, 100, undecided="it goes on")
    assert verdict.kept(Guarantee.AT_LEAST_ONCE) == "unknown"
    assert verdict.kept(Guarantee.EXACTLY_ONCE) == verdict.kept(Guarantee.AT_MOST_ONCE) == "no"


MARKED = INPUTS.with_columns(watermark=INPUTS["time"] + 110)
"""Event 2, of the window from 0 to 100, came when the watermark was at most 209."""


def test_an_event_that_is_called_late_must_have_been_late():
    rows = [(7, 0, [1], [11]), *RIGHT[1:]]
    late = Batch.of(id=[2])
    verdict = judge(MARKED, output(rows), late, 100, lateness_ms=109)
    assert not verdict.causes
    verdict = judge(MARKED, output(rows), late, 100, lateness_ms=110)
    witness = {"resource": 7, "window": 0, "id": 2, "position": 0, "other": 209}
    only(verdict, Cause.NOT_LATE, **witness)
    assert verdict.kept(Guarantee.AT_MOST_ONCE) == "yes"
    assert verdict.kept(Guarantee.AT_LEAST_ONCE) == verdict.kept(Guarantee.EXACTLY_ONCE) == "no"
    assert verdict.reliable == 6


def test_an_event_that_was_in_time_and_is_late_and_windowed_has_one_cause():
    verdict = judge(MARKED, output(RIGHT), Batch.of(id=[2]), 100, lateness_ms=500)
    assert verdict.causes == {Cause.LATE_AND_WINDOWED: 1}
    twice = judge(MARKED, output([(7, 0, [1], [11]), *RIGHT[1:]]), Batch.of(id=[2, 2]), 100)
    assert twice.causes == {Cause.LATE_TWICE: 1}


def test_where_everything_is_late_nobody_knows():
    verdict = judged([], late=[1, 2, 3, 4, 11, 13, 14])
    assert not verdict.causes
    assert {verdict.kept(level) for level in PROMISES} == {"unknown"}
    assert verdict.doubt == (
        "no output counts an event in time, so nothing was compared: of 7 events 7 are late and 0 lost"
    )
    invented = judged([(9, 500, [66], [])], late=[1, 2, 3, 4, 11, 13, 14])
    assert invented.kept(Guarantee.AT_LEAST_ONCE) == "unknown"
    assert invented.kept(Guarantee.EXACTLY_ONCE) == "no"


def test_too_much_that_is_late_breaks_every_guarantee():
    verdict = judged([(7, 0, [1], [11]), *RIGHT[1:]], late=[2])
    assert verdict.late_share == 1 / 7
    assert replace(verdict, max_late=1 / 7).kept(Guarantee.EXACTLY_ONCE) == "yes"
    assert {replace(verdict, max_late=0.1).kept(level) for level in PROMISES} == {"no"}


def test_an_empty_output_keeps_nothing():
    """At most once nothing is too much, but nobody has seen an output to say so."""
    verdict = judged([])
    assert verdict.kept(Guarantee.AT_MOST_ONCE) == "unknown"
    assert verdict.kept(Guarantee.AT_LEAST_ONCE) == verdict.kept(Guarantee.EXACTLY_ONCE) == "no"


def test_windows_after_the_time_up_to_which_is_judged_are_only_looked_at():
    verdict = judge(INPUTS, output(RIGHT[:1]), Batch.of(id=[3, 3]), 100, until_ms=199)
    assert verdict == Judged(3, 1, 0, 0, 0, 3, 3, 0, unjudged=Unjudged(4, 1))
    assert judge(INPUTS, output(RIGHT[:1]), None, 100, until_ms=200).causes == {Cause.TRUNCATED: 2}
    # 3 is an event, although its window is not judged, and 1 is not lost
    moved = [(7, 0, [3, 2], [11]), (7, 100, [1], [13])]
    verdict = judge(INPUTS, output(moved), None, 100, until_ms=100)
    assert verdict.causes == {Cause.MISPLACED: 1}
    assert verdict.lost == 0


def test_where_no_window_is_judged_nobody_knows():
    verdict = judge(INPUTS, output(RIGHT), None, 100, until_ms=99)
    assert verdict == Judged(0, 0, 0, 0, 0, 0, 0, 0, unjudged=Unjudged(7, 2))
    assert {verdict.kept(level) for level in PROMISES} == {"unknown"}


def test_an_id_that_is_no_event_is_invented():
    verdict = judged([*RIGHT, (9, 500, [77, 66], [])])
    only(verdict, Cause.INVENTED, resource=9, window=500, id=66, position=3)
    assert verdict.kept(Guarantee.AT_LEAST_ONCE) == "yes"
    assert verdict.kept(Guarantee.AT_MOST_ONCE) == verdict.kept(Guarantee.EXACTLY_ONCE) == "no"


def test_an_output_without_ids_is_invented():
    verdict = judged([*RIGHT, (9, 500, [], [])])
    only(verdict, Cause.INVENTED, resource=9, window=500, id=None, position=3)


def test_a_late_id_that_is_no_event_is_invented():
    verdict = judged(RIGHT, late=[66])
    only(verdict, Cause.INVENTED, resource=None, window=None, id=66, position=0)


def test_the_wrong_window_is_named_with_the_right_one():
    verdict = judged([(7, 50, [1, 2], [11]), *RIGHT[1:]])
    only(verdict, Cause.WRONG_WINDOW, resource=7, window=50, id=1, position=0, other=0)
    assert (verdict.lost, verdict.repeated, verdict.reliable) == (0, 0, 4)


def test_posts_of_another_output_make_a_wrong_pair():
    verdict = judged([(7, 0, [1, 2], [14]), RIGHT[1], (8, 100, [4], [11])])
    witness = {"resource": 7, "window": 0, "id": 14, "position": 0, "other": 100}
    only(verdict, Cause.WRONG_PAIR, 2, **witness)


def test_gets_of_another_output_make_a_wrong_pair():
    verdict = judged([RIGHT[0], (7, 100, [4], [13]), (8, 100, [3], [14])])
    witness = {"resource": 7, "window": 100, "id": 4, "position": 1, "other": 100}
    only(verdict, Cause.WRONG_PAIR, 2, **witness)


@pytest.mark.parametrize(
    ("row", "id"),
    [
        ((8, 0, [1, 2], [11]), 1),  # another resource
        ((7, 0, [1, 2, 3], [11]), 3),  # several windows
        ((7, 50, [1, 2, 3], [11]), 1),  # several windows, none of them its own
        ((7, 0, [1, 2, 11], []), 11),  # the wrong side
        ((7, 0, [1, 2], [11, 13]), 13),  # only a part of one side
        ((7, 0, [1, 2], [11, 13, 14]), 13),  # several places
    ],
)
def test_ids_that_belong_elsewhere_are_misplaced(row, id):
    verdict = judged([row, *RIGHT[1:]])
    assert verdict.leading is Cause.MISPLACED
    assert verdict.witnesses[Cause.MISPLACED].id == id


def test_an_event_that_was_counted_twice_in_the_state_is_seen():
    verdict = judged([(7, 0, [1, 1], [11]), *RIGHT[1:]])
    assert dict(verdict.causes) == {Cause.TWICE_INSIDE: 1, Cause.INCOMPLETE: 1}
    assert verdict.witnesses[Cause.INCOMPLETE] == Witness(Cause.INCOMPLETE, 7, 0, 2, None, 0)
    assert (verdict.lost, verdict.repeated, verdict.reliable) == (1, 1, 5)


def test_a_wrong_count_is_seen_although_the_ids_are_right():
    verdict = judged(RIGHT, posts=[1, 2, 1])
    only(verdict, Cause.WRONG_VALUE, resource=7, window=100, id=3, position=1)
    assert verdict.reliable == 5


def test_a_duplicate_names_both_outputs():
    verdict = judged([*RIGHT, (7, 100, [3], [13])], position=[40, 30, 20, 10])
    only(verdict, Cause.DUPLICATE, resource=7, window=100, id=3, position=30, other=10)
    assert verdict.kept(Guarantee.AT_LEAST_ONCE) == "yes"
    assert verdict.kept(Guarantee.AT_MOST_ONCE) == "no"


def test_where_positions_are_the_same_the_row_that_comes_first_is_the_earlier_one():
    partial = [(7, 0, [1, 2], [11]), (7, 0, [1], [])]
    verdict = judged([*partial, *RIGHT[1:]], position=[5, 5, 5, 5])
    only(verdict, Cause.DUPLICATE, resource=7, window=0, id=1, position=5, other=5)
    assert judged([*partial[::-1], *RIGHT[1:]], position=[5] * 4).causes == {Cause.DUPLICATE: 1}


def test_an_event_that_is_late_and_windowed_is_no_duplicate():
    verdict = judged(RIGHT, late=[3, 3])
    only(verdict, Cause.LATE_AND_WINDOWED, resource=7, window=100, id=3, position=0, other=1)
    assert verdict.repeated == 1


def test_an_event_that_is_late_twice_is_seen():
    verdict = judged([(7, 0, [1], [11]), *RIGHT[1:]], late=[2, 2])
    only(verdict, Cause.LATE_TWICE, resource=7, window=0, id=2, position=0, other=1)


def test_the_end_can_be_missing():
    verdict = judged(RIGHT[:1])
    only(verdict, Cause.TRUNCATED, 2, resource=7, window=100, id=3, position=None)
    assert verdict.kept(Guarantee.AT_MOST_ONCE) == "yes"
    assert verdict.kept(Guarantee.AT_LEAST_ONCE) == "no"


def test_without_any_output_everything_is_truncated():
    only(judged([]), Cause.TRUNCATED, 3, resource=7, window=0, id=1, position=None)


def test_something_in_the_middle_can_be_missing():
    verdict = judged(RIGHT[1:])
    only(verdict, Cause.MISSING, resource=7, window=0, id=1, position=None)
    assert verdict.lost == 3


def test_a_window_of_which_another_resource_came_out_is_not_truncated():
    assert judged(RIGHT[:2]).leading is Cause.MISSING


def test_what_is_lost_from_an_incomplete_output_may_yet_come():
    verdict = judge(INPUTS, output(RIGHT[:1]), None, 100, undecided="the run was interrupted")
    assert verdict.causes == {Cause.TRUNCATED: 2}
    assert (
        verdict.kept(Guarantee.AT_LEAST_ONCE) == verdict.kept(Guarantee.AT_MOST_ONCE) == "unknown"
    )
    twice = judge(INPUTS, output([*RIGHT, RIGHT[0]]), None, 100, undecided="interrupted")
    assert twice.kept(Guarantee.EXACTLY_ONCE) == "no"


def test_counts_of_one_stream_are_judged_without_posts():
    inputs = Batch.of(id=[5, 6], time=[-1, 3], resource=["b", "é"])
    outputs = Batch.of(resource=["é", "b"], window=[0, -10], count=[1, 1], ids=[[6], [5]])
    assert not judge(inputs, outputs, None, 10).causes
    words = outputs.with_columns(resource=Words(outputs["window"] * 0, ("b",)))
    verdict = judge(inputs, words, None, 10)
    assert verdict.witnesses[Cause.MISPLACED] == Witness(Cause.MISPLACED, "b", 0, 6, 0, 0)


def test_of_no_inputs_and_no_outputs_nobody_knows():
    nothing = Batch.of(id=[], time=[], resource=[])
    assert judge(nothing, None, None, 10) == Judged(0, 0, 0, 0, 0, 0, 0, 0)
    assert judge(nothing, None, None, 10).kept(Guarantee.AT_MOST_ONCE) == "unknown"
    some = Batch.of(resource=["a"], window=[0], count=[1], ids=[[5]])
    assert judge(nothing, some, Batch.of(id=[3]), 10).causes == {Cause.INVENTED: 2}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"inputs": INPUTS.select("id", "time")},
            "the input has no column 'resource', only id, time",
        ),
        (
            {"outputs": output(RIGHT).select("resource", "window")},
            "the output has no column 'gets'",
        ),
        ({"outputs": output(RIGHT, gets=[1.0, 1.0, 1.0])}, "'gets' must hold whole numbers"),
        ({"outputs": output(RIGHT, get_ids=[1, 2, 3])}, "'get_ids' must hold lists of ids"),
        ({"outputs": output(RIGHT, resource=["a", "b", "c"])}, "of one type: numbers or strings"),
        (
            {"inputs": INPUTS.with_columns(id=INPUTS["id"] * 0 + 5)},
            "the id 5 stands twice in the input",
        ),
        ({"size_ms": 0}, "a window is longer than nothing"),
    ],
)
def test_bad_tables_are_refused_with_one_clear_message(change, message):
    arguments = {"inputs": INPUTS, "outputs": output(RIGHT), "late": None, "size_ms": 100}
    with pytest.raises(UsageError, match=message):
        judge(**{**arguments, **change})
