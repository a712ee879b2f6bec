"""An account does not depend on order or form, and tells any other multiset of rows."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapline.batch import Batch, Varlen, Words, concat
from snapline.storage.row_account import RowAccount, account_of

LETTERS = ("", "a", "ab", "ba", "é", "\0")
ROWS = st.lists(
    st.tuples(
        st.integers(-3, 3),
        st.sampled_from(LETTERS),
        st.lists(st.integers(0, 2), max_size=3),
        st.sampled_from([0.0, 0.5, -1.0]),
        st.booleans(),
    ),
    max_size=12,
)


def batch_of(rows):
    numbers, words, lists, floats, flags = zip(*rows, strict=True) if rows else ((), (), (), (), ())
    return Batch(
        {
            "n": np.array(numbers, np.int64),
            "s": Varlen.of("str", words),
            "l": Varlen.of("list", lists),
            "f": np.array(floats, np.float64),
            "b": np.array(flags, np.bool_),
        },
        len(rows),
    )


def sorted_rows(rows):
    return sorted(map(repr, rows))


@given(ROWS, ROWS)
def test_accounts_are_equal_if_and_only_if_the_multisets_are(one, other):
    equal = account_of(batch_of(one)) == account_of(batch_of(other))
    assert equal == (sorted_rows(one) == sorted_rows(other))


@given(ROWS, st.integers(0, 12), st.integers())
def test_order_and_batches_do_not_matter_and_a_part_is_taken_away(rows, at, seed):
    shuffled = Random(seed).sample(rows, len(rows))
    whole, head, tail = (account_of(batch_of(r)) for r in (rows, shuffled[:at], shuffled[at:]))
    assert whole == head + tail
    assert whole - head == tail
    assert whole.rows == len(rows)
    assert account_of(batch_of([])) == RowAccount()


def test_the_same_row_twice_is_another_account():
    once = account_of(batch_of([(1, "a", [1], 0.5, True)]))
    assert once + once != once
    assert (once + once).total != once.total


def test_the_form_of_a_column_does_not_matter_but_its_name_does():
    rows = Batch({"n": np.array([1, 2], np.int64), "s": Varlen.of("str", ["x", "yz"])})
    coded = Words(np.array([1, 0], np.int32), ("yz", "x"))
    same = Batch({"s": coded, "n": np.array([1, 2], np.uint8)})
    assert account_of(rows) == account_of(same)
    assert account_of(rows) != account_of(rows.rename({"n": "m"}))
    zeros = Batch({"f": np.array([0.0, -0.0, np.nan])})
    assert account_of(zeros) == account_of(Batch({"f": np.array([0.0, 0.0, -np.nan], np.float32)}))
    part = concat([rows, rows]).slice(1, 3)
    assert account_of(part) == account_of(rows)


def test_values_do_not_run_into_each_other():
    one = Batch({"a": Varlen.of("str", ["x"]), "b": Varlen.of("str", ["yz"])})
    other = Batch({"a": Varlen.of("str", ["xy"]), "b": Varlen.of("str", ["z"])})
    assert account_of(one) != account_of(other)
    eight = "\0" * 8
    one = Batch({"a": Varlen.of("str", ["x" + eight]), "b": Varlen.of("str", [""])})
    other = Batch({"a": Varlen.of("str", ["x"]), "b": Varlen.of("str", [eight])})
    assert account_of(one) != account_of(other)
    text, raw = Varlen.of("str", ["x"]), Varlen.of("bytes", [b"x"])
    assert account_of(Batch({"a": text})) != account_of(Batch({"a": raw}))


def test_a_column_of_an_unknown_kind_is_refused():
    with pytest.raises(TypeError, match="datetime64"):
        account_of(Batch({"t": np.zeros(1, "datetime64[s]")}))
