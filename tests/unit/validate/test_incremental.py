"""Judged window by window or as a whole: the same, in any interleaving, and in bounded memory."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_judge import SIZE_MS, nonsense, tables, watermarks

from snapline.batch import Batch
from snapline.core.guarantee import Guarantee
from snapline.validate.causes import Cause
from snapline.validate.check import judge
from snapline.validate.incremental import Incremental
from snapline.validate.judged import Judged, Witness

LATENESS_MS = 30
GRACE_MS = 20
HOLD_MS = SIZE_MS + LATENESS_MS + GRACE_MS


def fresh():
    return Incremental(SIZE_MS, lateness_ms=LATENESS_MS, grace_ms=GRACE_MS)


def deadlines(inputs, outputs, late):
    """Of every row the window by whose closing it must be known, and a key that puts it into an order."""
    window = {id: time // SIZE_MS * SIZE_MS for id, time, *_ in inputs}
    claimed = [[id for id in [*row[4], *row[6]] if id in window] for row in outputs]
    own = [
        min([row[2], *(window[id] for id in ids)])
        for row, ids in zip(outputs, claimed, strict=True)
    ]
    of_event = [
        min(
            [
                window[row[0]],
                *(o[2] for o, ids in zip(outputs, claimed, strict=True) if row[0] in ids),
            ]
        )
        for row in inputs
    ]
    return of_event, own, [window[id] for _, id in late]


def interleaved(dice, rows, marks=None):
    """Give rows one by one in a random order, the watermark always as far as it may be, or not."""
    inputs, _, late = rows
    limits = deadlines(*rows)
    keys = [[dice.random() for _ in table] for table in rows]
    of_id = dict(zip((row[0] for row in inputs), keys[0], strict=True))
    keys[2] = [max(key, of_id[id]) for key, (_, id) in zip(keys[2], late, strict=True)]
    order = sorted(
        (keys[table][number], table, number)
        for table in range(3)
        for number in range(len(rows[table]))
    )
    judge = fresh()
    add = (judge.add_inputs, judge.add_outputs, judge.add_late)
    batches = tables(*rows, marks=marks)
    for done, (_, table, number) in enumerate(order):
        add[table](batches[table].slice(number, number + 1))
        left = [limits[table][number] for _, table, number in order[done + 1 :]]
        if left and dice.random() < 0.5:
            judge.advance(min(left) - 1 + HOLD_MS - dice.choice((0, 0, 50)))
    judge.advance(dice.choice((0, 150, 10_000)))
    return judge.finish()


def whole(rows, marks):
    return judge(*tables(*rows, marks=marks), SIZE_MS, lateness_ms=LATENESS_MS)


@settings(max_examples=80)
@given(st.randoms(use_true_random=False), st.sampled_from([(1, 2, 3), ("é", "b", "")]))
def test_any_interleaving_comes_to_the_same_judgement(dice, names):
    inputs, outputs, late = nonsense(dice, names)
    known = {row[0] for row in inputs}
    rows = (inputs, outputs, [row for row in late if row[1] in known])
    marks = watermarks(dice, inputs)
    assert interleaved(dice, rows, marks) == whole(rows, marks)


def test_many_random_interleavings_come_to_the_same_judgement_and_show_every_cause():
    dice = random.Random(6)
    seen = set()
    for _ in range(300):
        inputs, outputs, late = nonsense(dice)
        known = {row[0] for row in inputs}
        rows = (inputs, outputs, [row for row in late if row[1] in known])
        marks = watermarks(dice, inputs)
        verdict = interleaved(dice, rows, marks)
        assert verdict == whole(rows, marks)
        seen |= verdict.causes.keys()
    assert seen == set(Cause)


def events(*rows, resource=7):
    id, time = zip(*rows, strict=True)
    return Batch.of(id=id, time=time, resource=[resource] * len(rows))


def outputs(*rows, resource=7):
    window, ids = zip(*rows, strict=True)
    counts = [len(claimed) for claimed in ids]
    return Batch.of(resource=[resource] * len(rows), window=window, count=counts, ids=ids)


def test_a_window_is_judged_once_the_watermark_is_beyond_its_end_and_what_it_waits_for():
    judge = fresh()
    judge.add_inputs(events((1, 10), (2, 110)))
    assert judge.advance(HOLD_MS - 1) is None
    assert judge.advance(HOLD_MS) == Judged(
        *(1, 0, 0, 1, 0, 0, 0, 0),
        {Cause.TRUNCATED: 1},
        {Cause.TRUNCATED: Witness(Cause.TRUNCATED, 7, 0, 1, None)},
    )
    assert judge.held_events == 1
    assert judge.so_far.kept(Guarantee.AT_LEAST_ONCE) == "no"


def test_what_seemed_truncated_is_missing_once_the_output_goes_on():
    judge = fresh()
    judge.add_inputs(events((1, 10), (2, 110), (3, 220)))
    judge.advance(HOLD_MS + 200)
    assert judge.so_far.causes == {Cause.TRUNCATED: 3}
    assert judge.so_far.witnesses[Cause.TRUNCATED] == Witness(Cause.TRUNCATED, 7, 0, 1, None)
    judge.add_inputs(events((4, 110), resource=8))
    judge.add_outputs(outputs((100, [4]), resource=8))
    verdict = judge.finish()
    assert verdict.causes == {Cause.MISSING: 2, Cause.TRUNCATED: 1}
    assert verdict.witnesses[Cause.MISSING] == Witness(Cause.MISSING, 7, 0, 1, None)
    assert verdict.witnesses[Cause.TRUNCATED] == Witness(Cause.TRUNCATED, 7, 200, 3, None)


def test_events_of_a_silent_window_that_come_later_are_lost_as_well():
    judge = fresh()
    judge.add_inputs(events((5, 10)))
    judge.advance(HOLD_MS)
    judge.add_inputs(events((9, 20), resource=6))
    verdict = judge.finish()
    assert verdict.causes == {Cause.TRUNCATED: 2}
    assert verdict.witnesses[Cause.TRUNCATED] == Witness(Cause.TRUNCATED, 6, 0, 9, None)


def test_nothing_is_judged_twice_for_the_sake_of_an_open_output():
    judge = fresh()
    judge.add_inputs(events((1, 10)))
    judge.add_outputs(outputs((100, [1])))
    assert judge.advance(HOLD_MS) == Judged(1, 0, 0, 0, 0, 0, 0, 0)
    assert judge.held_events == 1  # for the output
    assert judge.advance(HOLD_MS + 99) is None
    judge.add_late(Batch.of(id=[1]))  # after its event was judged
    assert judge.finish().causes == {Cause.WRONG_WINDOW: 1, Cause.INVENTED: 1}
    assert judge.held_events == 0


def closed_up_to(window, *, lost=False):
    """A judge that has closed these windows."""
    judge = fresh()
    judge.add_inputs(events((1, 10), (2, 20)))
    judge.add_outputs(outputs((0, [1] if lost else [1, 2])))
    judge.advance(window + HOLD_MS)
    return judge


def test_an_event_that_comes_after_its_window_and_is_late_is_fine():
    judge = closed_up_to(0)
    judge.add_inputs(events((3, 30), (4, 130)))
    judge.advance(HOLD_MS + 1)
    judge.add_late(Batch.of(id=[3]))
    judge.advance(HOLD_MS + 99)
    judge.add_outputs(outputs((100, [4])))
    assert judge.finish() == Judged(4, 2, 1, 0, 0, 4, 3, 1)


def test_an_event_that_comes_after_its_window_and_is_lost_is_missing():
    judge = closed_up_to(0)
    judge.add_inputs(events((3, 30)))
    assert judge.advance(2 * HOLD_MS - 1) is None
    assert judge.advance(2 * HOLD_MS).causes == {Cause.MISSING: 1}


def test_an_output_that_comes_again_after_its_window_is_a_duplicate():
    judge = closed_up_to(0)
    judge.add_outputs(outputs((0, [2, 1])))
    verdict = judge.finish()
    assert verdict.witnesses == {Cause.DUPLICATE: Witness(Cause.DUPLICATE, 7, 0, 1, 1)}
    assert verdict.kept(Guarantee.EXACTLY_ONCE) == "no"
    assert verdict.undecided is None


def test_an_output_that_comes_after_its_window_may_be_what_was_lost():
    judge = closed_up_to(0, lost=True)
    assert judge.so_far.causes == {Cause.INCOMPLETE: 1}
    judge.add_outputs(outputs((0, [2])))
    verdict = judge.finish()
    assert verdict.causes == {Cause.INCOMPLETE: 1}
    assert "1 output and 0 rows of the late output came after" in verdict.undecided
    assert verdict.kept(Guarantee.AT_LEAST_ONCE) == "unknown"
    assert verdict.kept(Guarantee.AT_MOST_ONCE) == "unknown"


def test_an_output_that_comes_after_its_window_with_events_that_do_too_may_be_a_part():
    judge = closed_up_to(0)
    judge.add_inputs(events((3, 30)))
    judge.add_outputs(outputs((0, [3])))
    verdict = judge.finish()
    assert (verdict.causes, verdict.reliable) == ({}, 3)
    assert "1 output and 0 rows of the late output came after" in verdict.undecided
    assert verdict.kept(Guarantee.EXACTLY_ONCE) == "unknown"


def test_two_outputs_after_their_window_with_the_same_event_are_duplicates():
    judge = closed_up_to(0)
    judge.add_inputs(events((3, 30)))
    judge.add_outputs(outputs((0, [3])))
    judge.advance(HOLD_MS + 60)
    judge.add_outputs(outputs((0, [3])))
    judge.advance(2 * HOLD_MS)
    verdict = judge.finish()
    assert verdict.witnesses == {Cause.DUPLICATE: Witness(Cause.DUPLICATE, 7, 0, 3, 2, 1)}
    assert verdict.repeated == 1


def test_an_output_of_an_open_window_with_a_forgotten_id_is_invented():
    judge = closed_up_to(0)
    judge.add_outputs(outputs((100, [1])))
    assert judge.finish().causes == {Cause.INVENTED: 1}


@pytest.mark.parametrize(("lost", "answer"), [(False, "no"), (True, "unknown")])
def test_a_late_row_with_an_unknown_id_is_a_fault_unless_it_may_be_what_was_lost(lost, answer):
    judge = closed_up_to(0, lost=lost)
    judge.add_late(Batch.of(id=[2]))
    verdict = judge.finish()
    assert (Cause.INVENTED in verdict.causes) is (not lost)
    assert verdict.kept(Guarantee.AT_MOST_ONCE) == answer
    assert verdict.late == 1


def test_a_late_row_that_comes_before_all_else_waits_for_its_event():
    judge = fresh()
    judge.add_late(Batch.of(id=[1]))
    judge.advance(0)
    judge.add_inputs(events((1, 10)))
    assert judge.finish() == Judged(1, 0, 1, 0, 0, 1, 0, 1)


def test_a_late_row_waits_for_its_event_as_long_as_the_newest_window_does():
    judge = fresh()
    judge.add_inputs(events((9, 300)))
    judge.advance(HOLD_MS - 100)
    judge.add_late(Batch.of(id=[1]))
    judge.advance(HOLD_MS + 60)
    judge.add_inputs(events((1, 110)))
    judge.add_outputs(outputs((300, [9])))
    assert judge.finish() == Judged(2, 1, 1, 0, 0, 2, 1, 1)


def stream(number, per_window=50):
    """The events of a window, some of them late, and what came out of it."""
    window = number * SIZE_MS
    ids = np.arange(number * per_window, (number + 1) * per_window)
    inputs = Batch.of(id=ids, time=window + ids % SIZE_MS, resource=ids % 5)
    kept, late = ids[ids % 10 != 0], ids[ids % 10 == 0]
    claimed = [kept[kept % 5 == resource].tolist() for resource in range(1, 5)]
    claimed.insert(0, kept[kept % 5 == 0].tolist())
    rows = Batch.of(
        resource=list(range(5)), window=[window] * 5, count=[len(c) for c in claimed], ids=claimed
    )
    return inputs, rows, Batch.of(id=late)


def test_memory_is_bounded_by_the_open_windows_however_long_the_run():
    judge = Incremental(SIZE_MS, lateness_ms=SIZE_MS, grace_ms=SIZE_MS)
    held = []
    rows = late = None
    for number in range(400):
        judge.add_outputs(rows)  # of the window before
        judge.add_late(late)
        inputs, rows, late = stream(number)
        judge.add_inputs(inputs)
        judge.advance((number + 1) * SIZE_MS)
        assert judge.held_bytes <= judge.bound_bytes
        held.append((judge.held_events, judge.held_bytes))
    judge.add_outputs(rows)
    judge.add_late(late)
    assert max(held[10:]) == held[10]  # it does not grow any more
    assert max(events for events, _ in held) <= 4 * 50
    assert judge.finish() == Judged(20_000, 2_000, 2_000, 0, 0, 20_000, 18_000, 2_000)
    assert (judge.held_events, judge.held_bytes) == (0, 16)
