"""An output held against runs without failures: what is the same in all orders of input decides."""

import numpy as np
import pytest

from snapline.batch import Batch, Varlen
from snapline.core.guarantee import Guarantee
from snapline.workload.oracles.reference import ORDERS, Break, Comparer
from snapline.workload.oracles.views import SinkTable, steady_views

EXACTLY, LEAST, MOST = (
    Guarantee.EXACTLY_ONCE,
    Guarantee.AT_LEAST_ONCE,
    Guarantee.AT_MOST_ONCE,
)
KEY = [("key",)]


def shuffled(order, size=200):
    """Records of four keys in some order: key, number, value."""
    dice = np.random.default_rng(order)
    numbers = dice.permutation(size)
    return numbers % 4, numbers, numbers * numbers % 17 + 1


def per_key(keys, values, running):
    out = np.zeros(len(keys), values.dtype)
    for key in range(4):
        out[keys == key] = running(values[keys == key])
    return out


def sums(order, kind=np.int64, lost_at=None):
    """A running sum; with `lost_at`, one that forgot its state once."""
    keys, numbers, values = shuffled(order)
    values = values.astype(kind) * (kind(0.1) if kind is np.float64 else 1)
    totals = per_key(keys, values, np.cumsum)
    if lost_at is not None:
        before = per_key(keys, np.where(np.arange(len(keys)) < lost_at, values, 0), np.cumsum)
        totals = np.where(np.arange(len(keys)) < lost_at, totals, totals - before)
    return {"out": Batch({"key": keys, "number": numbers, "total": totals})}


def highest(order, lost_at=None):
    """The highest value of each key, whenever it rises; even the number of rows is free."""
    keys, _, values = shuffled(order, 80)
    rows, best = [], {}
    for place, (key, value) in enumerate(zip(keys.tolist(), values.tolist(), strict=True)):
        if place == lost_at:
            best = {}
        if value > best.get(key, 0):
            best[key] = value
            rows.append((key, value))
    keys, values = np.array(rows).T
    return {"out": Batch({"key": keys, "highest": values})}


def at(found, reference, level=EXACTLY, breaks=()):
    return Comparer(found, reference, KEY, breaks).at(level)


def forgets(reference, noticed=True):
    """The reference, broken on purpose: its state is lost in the middle."""
    broken = {"lost_at": 40} if noticed else {}
    return Break("'op' lost its state", "state", lambda n: (reference(1), reference(1, **broken)))


def test_an_output_that_is_that_of_some_order_needs_no_other():
    asked = []

    def reference(order):
        asked.append(order)
        return sums(order)

    comparison = at(sums(0), reference)
    assert (comparison.kept, comparison.views, asked) == ("yes", (), [0])


def test_the_steps_and_the_last_value_of_a_running_sum_are_compared():
    comparison = at(sums(77), sums, breaks=[forgets(sums)])
    assert comparison.kept == "yes"
    assert comparison.views == (
        "of 'out' the rows of (key, number), the last total of each key, the steps of total of each "
        "key, the falls of total of each key, the repetitions of total of each key, the greatest total "
        "of each key",
    )


@pytest.mark.parametrize("kind", [np.int64, np.float64])
@pytest.mark.parametrize("lost_at", [30, 100, 190])
def test_a_running_sum_that_forgot_is_found_although_its_sums_depend_on_the_order(kind, lost_at):
    def reference(order):
        return sums(order, kind)

    assert at(reference(77), reference).kept == "yes"
    comparison = at(sums(77, kind, lost_at), reference)
    assert comparison.kept == "no"
    assert "total" in comparison.problems[0].record


def test_rounding_is_no_fault_and_more_than_rounding_is():
    def reference(order):
        return sums(order, np.float64)

    whole = reference(77)["out"]
    rounded = whole.with_columns(total=whole["total"] * (1 + 1e-13))
    wrong = whole["total"].copy()
    wrong[50] += 0.01
    assert at({"out": rounded}, reference).kept == "yes"
    comparison = at({"out": whole.with_columns(total=wrong)}, reference)
    assert (comparison.kept, comparison.problems[0].kind) == ("no", "wrong")
    assert "differ by more than rounding" in comparison.problems[0].because


def test_fractions_beside_rows_that_are_free_of_order_are_compared_up_to_rounding():
    def reference(order):
        dice = np.random.default_rng(order)
        mean = np.arange(50) / 7 * (1 + dice.uniform(-1e-15, 1e-15, 50))
        return {"out": Batch({"key": np.arange(50), "mean": mean}).take(dice.permutation(50))}

    assert (at(reference(9), reference).kept, at(reference(9), reference).views) == ("yes", ())
    mean = reference(9)["out"]["mean"].copy()
    mean[3] *= 1.001
    found = {"out": reference(9)["out"].with_columns(mean=mean)}
    assert at(found, reference).kept == "no"


def test_the_last_value_of_a_running_maximum_is_compared_even_if_the_number_of_rows_is_free():
    assert len({len(highest(order)["out"]) for order in range(4)}) > 1
    comparison = at(highest(77), highest, breaks=[forgets(highest)])
    assert comparison.kept == "yes"
    assert "the last highest of each key" in comparison.views[0]
    (problem, *_) = at(highest(77, lost_at=70), highest).problems
    assert problem.kind == "missing"
    assert "out(key=" in problem.record


def test_what_was_the_same_only_by_chance_accuses_nobody():
    """The first three orders happen to agree, the fourth does not."""

    def reference(order):
        return {"out": Batch.of(key=[1, 1], value=[5, 6] if order < 3 else [6, 6])}

    found = {"out": Batch.of(key=[1, 1], value=[6, 6])}
    assert at(found, reference).kept == "yes"
    assert at({"out": Batch.of(key=[1, 1], value=[6, 9])}, reference).kept == "no"
    assert ORDERS[0] == 3


def test_if_nothing_that_is_left_shows_a_loss_the_answer_is_unknown():
    def noise(order, lost_at=None):
        keys, numbers, _ = shuffled(order)
        values = np.random.default_rng([order, lost_at or 0]).integers(0, 1 << 40, len(keys))
        return {"out": Batch({"key": keys, "number": numbers, "noise": values})}

    assert at(noise(77), noise, breaks=[forgets(noise, noticed=False)]).kept == "yes"
    comparison = at(noise(77), noise, breaks=[forgets(noise)])
    assert comparison.kept == "unknown"
    assert "would be the same if 'op' lost its state" in comparison.undecided
    assert "of 'out' the rows of (key, number)" in comparison.undecided
    short = {"out": noise(77)["out"].slice(1, 200)}
    assert at(short, noise, breaks=[forgets(noise)]).kept == "no"


def test_output_that_never_comes_out_the_same_is_undecided():
    def different(order):
        return {"out": Batch.of(a=[order] * (order + 1), b=[order] * (order + 1))}

    comparison = at({"out": Batch.of(a=[99], b=[98])}, different)
    assert comparison.kept == "unknown"
    assert (
        "runs without failures differ, too, in all that is known of 'out'" in comparison.undecided
    )


def test_a_weaker_promise_is_judged_by_rows_only():
    """A record that counts twice changes every later sum, which at least once allows."""

    def twice(order, lost_at=None):
        keys, numbers, values = shuffled(order)
        again = np.r_[np.arange(len(keys)), 7]
        totals = per_key(keys[again], values[again], np.cumsum)
        return {"out": Batch({"key": keys[again], "number": numbers[again], "total": totals})}

    assert at(twice(77), sums).kept == "no"
    assert at(twice(77), sums, MOST).kept == "no"
    assert at(twice(77), sums, LEAST).kept == "yes"
    assert at(twice(77), sums, LEAST, [forgets(sums)]).kept == "unknown"
    repeats = Break("records came twice", "excess", lambda n: (sums(1), twice(1)))
    assert at(sums(77), sums, MOST, [repeats]).kept == "yes"
    lost = {"out": twice(77)["out"].slice(1, 201)}
    assert at(lost, sums, LEAST).kept == "no"


def test_a_break_that_changes_nothing_is_none():
    harmless = Break("nothing happened", "state", lambda n: (sums(1), sums(1)))
    raising = Break("it raised", "state", lambda n: (sums(1), None))
    assert at(sums(77), sums, breaks=[harmless, raising]).kept == "yes"


def test_every_sink_is_judged():
    def reference(order):
        return {"sums": sums(order)["out"], "late": Batch({}, 0), "all": sums(0)["out"]}

    found = {**reference(77)}
    assert at(found, reference).kept == "yes"
    (views,) = at(found, reference).views
    assert views.startswith("of 'sums'")
    (problem,) = at({**found, "late": Batch.of(a=[1])}, reference).problems
    assert (problem.kind, problem.record) == ("invented", "late(a=1)")
    assert at({**found, "all": sums(1)["out"]}, reference).kept == "no"
    del found["all"]
    assert at(found, reference).problems[0].kind == "missing"


def test_if_nothing_came_out_nobody_knows():
    def none(order):
        return {"out": Batch({}, 0)}

    nothing = {"out": Batch({}, 0)}
    assert at(nothing, none).kept == "unknown"
    assert "nothing came out" in at(nothing, none).undecided
    assert at(nothing, sums).kept == "no"
    assert at(nothing, sums, MOST).kept == "unknown"
    (problem,) = at({"out": Batch.of(a=[1])}, none).problems
    assert (problem.kind, problem.record) == ("invented", "out(a=1)")


def test_strings_lists_and_single_rows_are_views_too():
    def reference(order):
        dice = np.random.default_rng(order)
        rows = dice.permutation(60)
        words = Varlen.of("str", [f"word {n % 5}" for n in rows])
        return {
            "out": Batch(
                {
                    "key": words,
                    "ids": Varlen.of("list", [[n] * (n % 3) for n in rows]),
                    "seen": np.arange(60),
                    "last": Varlen.of("str", [f"{order} {n}" for n in range(60)]),
                }
            )
        }

    comparison = at(reference(77), reference)
    assert comparison.kept == "yes"
    assert "the rows of (key, ids)" in comparison.views[0]
    short = {"out": reference(77)["out"].slice(0, 59)}
    assert at(short, reference).problems[0].kind == "missing"


def test_wide_rows_with_many_free_columns_are_judged_by_what_is_left():
    def reference(order):
        dice = np.random.default_rng(order)
        free = {f"free{n}": dice.integers(0, 1 << 40, 30) for n in range(5)}
        return {"out": Batch({"key": np.arange(30), **free}).take(dice.permutation(30))}

    views = steady_views([SinkTable(reference(order)["out"]) for order in range(3)], KEY)
    assert [view.words for view in views] == ["the rows of (key)"]
    assert at(reference(7), reference).kept == "yes"


def test_a_repeated_row_of_a_running_maximum_is_found_and_a_column_that_may_fall_accuses_nobody():
    whole = highest(77)["out"]
    last = len(whole) - 1
    twice = {"out": whole.take(np.r_[np.arange(len(whole)), last])}
    assert at(twice, highest).kept == "no"

    falling = [Batch.of(key=[1, 1, 1], value=[order + 5, order + 9, 3]) for order in range(3)]
    kinds = [view.kind for view in steady_views([SinkTable(batch) for batch in falling], KEY)]
    assert kinds == ["rows", "last", "repetitions of", "least"]
