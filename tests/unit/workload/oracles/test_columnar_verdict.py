"""The oracles that judge columns say word for word what the plain ones say, whatever is wrong."""

from functools import cache

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from plain_verdict import PLAIN

from interleaver import run
from snapline.batch import Batch, Varlen, Words, concat
from snapline.core.guarantee import Guarantee
from snapline.workload import WORKLOADS
from snapline.workload.common.base import Params
from snapline.workload.oracles.codes import UNKNOWN, Codes, same_rows
from snapline.workload.oracles.verdict import LIMIT

PARAMS = Params(seed=4, partitions=2, records=80)

every_plain = pytest.mark.parametrize("name", PLAIN)


@cache
def good(name):
    """The output of a run without failures, and its sink."""
    ((sink, batch),) = run(WORKLOADS[name], PARAMS).output.items()
    return sink, batch


def assert_same_words(name, batch):
    """Both oracles agree at every level; the problems at the strictest one."""
    sink, _ = good(name)
    for level in Guarantee:
        fast = WORKLOADS[name].judge(PARAMS, {sink: batch}, {}, level)
        assert fast == PLAIN[name](PARAMS, batch, level), level
    return fast


@st.composite
def damages(draw):
    """What happens to an output: in rounds, each to a choice of rows."""
    kinds = st.sampled_from(["drop", "twice", "wrong", "wrong beside", "swap", "invent"])
    sizes = st.sampled_from([1, 2, 5, LIMIT + 10])
    rounds = draw(st.lists(st.tuples(kinds, sizes), max_size=4))
    return rounds, draw(st.integers(0, 2**32))


def damaged(batch, rounds, seed):
    dice = np.random.default_rng(seed)
    for kind, size in rounds:
        if not len(batch):
            break
        rows = dice.integers(0, len(batch), min(size, len(batch)))
        name = dice.choice(list(batch.columns))
        match kind:
            case "drop":
                batch = batch.take(~np.isin(np.arange(len(batch)), rows))
            case "twice":
                batch = concat([batch, batch.take(rows)])
            case "wrong":
                batch = changed(batch, rows, name, dice)
            case "wrong beside":
                beside = changed(batch.take(rows), np.arange(len(rows)), name, dice)
                batch = concat([batch, beside])
            case "swap":
                # The rows in this column come from other rows.
                column = batch.columns[name]
                order = np.arange(len(batch))
                order[rows] = order[rows[::-1]]
                moved = column[order] if isinstance(column, np.ndarray) else column.take(order)
                batch = batch.with_columns(**{name: moved})
            case "invent":
                columns = {
                    n: c + 1_000_000 if isinstance(c, np.ndarray) else c
                    for n, c in batch.take(rows).columns.items()
                }
                batch = concat([batch, Batch(columns, len(rows))])
    return batch.take(dice.permutation(len(batch)))


def changed(batch, rows, name, dice):
    """The batch with other values in some rows of one column."""
    column = batch.columns[name]
    if isinstance(column, np.ndarray):
        column = column.copy()
        column[rows] += dice.choice([-1, 1, 3, -1000])
        return batch.with_columns(**{name: column})
    words = column.to_list()
    for row in rows:
        words[row] = dice.choice([words[row] + "!", words[0], "", words[row].upper()])
    if isinstance(column, Varlen):
        return batch.with_columns(**{name: Varlen.of("str", words)})
    values = tuple(dict.fromkeys([*words, *column.values]))
    codes = np.array([values.index(word) for word in words], np.int32)
    return batch.with_columns(**{name: Words(codes, values)})


@every_plain
@settings(max_examples=100)
@given(damage=damages())
def test_whatever_happens_to_an_output_both_say_the_same(name, damage):
    assert_same_words(name, damaged(good(name)[1], *damage))


@every_plain
def test_the_damages_are_seen(name):
    """Or the test above would compare nothing with nothing."""
    batch = good(name)[1]
    for seed, kind in enumerate(["drop", "twice", "invent"]):
        assert assert_same_words(name, damaged(batch, [(kind, 5)], seed)), kind
    assert not assert_same_words(name, damaged(batch, [], 0))


@every_plain
def test_an_output_that_is_empty_or_half_is_judged_alike(name):
    batch = good(name)[1]
    for part in (batch.slice(0, 0), Batch({}, 0), concat([batch, batch])):
        assert len(assert_same_words(name, part)) == LIMIT
    assert assert_same_words(name, batch.slice(0, len(batch) // 2))


def test_a_word_is_the_same_in_every_kind_of_column():
    words = Words(np.array([1, 0, 1], np.int32), ("Kent", "Bend"))
    other = Words(np.array([0, 1, 2], np.int32), ("Bend", "Kent", "Boise"))
    spelt = Varlen.of("str", ["Bend", "Kent", "Bens"])
    tables = [Batch({"city": column}, 3) for column in (words, other, spelt)]
    for left in tables:
        for right in tables:
            same = same_rows(left, right, ("city",)).tolist()
            assert same == [True, True, left is right]
    numbers = Batch.of(city=[1, 2, 3])
    assert not same_rows(numbers, tables[0], ("city",)).any()
    assert not same_rows(tables[2], Batch.of(city=[b"Bend", b"Kent", b""]), ("city",)).any()


@given(
    st.lists(
        st.tuples(*[st.sampled_from([0, 1, 2, 7, -5, 2**40, 2**62, -(2**62)])] * 3),
        min_size=1,
        max_size=12,
    ),
    st.integers(1, 11),
)
def test_rows_have_the_same_number_if_and_only_if_they_are_equal(rows, cut):
    table = np.array(rows, np.int64)
    mine, others = table[:cut], table[cut:]
    codes = Codes(list(mine.T))
    numbers = [*codes.own.tolist(), *codes.of(list(others.T)).tolist()]
    assert min(numbers) >= UNKNOWN
    assert UNKNOWN not in numbers[:cut]
    for a, number in zip(rows[:cut], numbers[:cut], strict=True):
        assert [b == a for b in rows] == [other == number for other in numbers]


def test_a_number_with_a_fraction_is_no_whole_number():
    assert Codes([np.arange(5)]).of([np.array([1.0, 1.5, 2.0])]).tolist() == [1, UNKNOWN, 2]
    assert Codes([np.array([1.0, 1.5])]).of([np.arange(4)]).tolist() == [
        UNKNOWN,
        0,
        UNKNOWN,
        UNKNOWN,
    ]
