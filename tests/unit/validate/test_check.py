"""Every cause, by the smallest output that has it."""

import pytest

from snapline.batch import Batch, Words
from snapline.core.policy import Guarantee
from snapline.errors import UsageError
from snapline.validate.causes import Cause
from snapline.validate.check import judge
from snapline.validate.judged import PROMISES, Judged, Witness

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
    assert verdict == Judged(7, 3, 0, 0, 0, 7)
    assert {verdict.kept(level) for level in PROMISES} == {"yes"}
    assert verdict.reliability == 100.0


def test_a_late_event_is_as_good_as_a_windowed_one():
    verdict = judged([(7, 0, [1], [11]), *RIGHT[1:]], late=[2])
    assert verdict == Judged(7, 3, 1, 0, 0, 7)


def test_outputs_that_share_a_window_but_no_event_are_no_duplicates():
    assert not judged([(7, 0, [1], []), (7, 0, [2], [11]), *RIGHT[1:]]).causes


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


def test_no_inputs_and_no_outputs_are_fine():
    nothing = Batch.of(id=[], time=[], resource=[])
    assert judge(nothing, None, None, 10) == Judged(0, 0, 0, 0, 0, 0)
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
