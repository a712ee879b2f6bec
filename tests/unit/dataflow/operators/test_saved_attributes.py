"""Operators that name the attributes that hold their state: what comes back, and what is refused."""

import pickle
from collections import OrderedDict, defaultdict
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from operator_models import Written

import snapline as sl
from snapline.batch import Batch
from snapline.dataflow.deploy import deploy
from snapline.dataflow.graph import Dataflow
from snapline.dataflow.operators.guard import Guard
from snapline.dataflow.operators.operator import Operator
from snapline.engine.reference.rehearsal import rehearse
from snapline.errors import GraphError, OperatorFailed
from snapline.workload.common.own import generated


class Kept(Operator):
    saved = ("value",)

    def __init__(self, value=0):
        self.value = value


def again(value):
    """What an attribute is after it was captured, stored, read and given to a fresh operator."""
    fresh = Kept()
    fresh.restore([Written(Kept(value).capture(full=True)).read()])
    return fresh.value


def same(left, right):
    """Whether two values are the same in everything that a program can see of them."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return list(left) == list(right) and all(
            type(a) is type(b) and same(left[a], right[b]) for a, b in zip(left, right, strict=True)
        )
    if isinstance(left, np.ndarray | np.generic):
        shapes = (left.dtype, left.shape, left.tobytes(), left.flags.f_contiguous)
        return shapes == (right.dtype, right.shape, right.tobytes(), right.flags.f_contiguous)
    return pickle.dumps(left) == pickle.dumps(right)  # NaN and -0.0, too


DTYPES = st.one_of(
    arrays.boolean_dtypes(),
    arrays.integer_dtypes(endianness="?"),
    arrays.unsigned_integer_dtypes(endianness="?"),
    arrays.floating_dtypes(endianness="?", sizes=(16, 32, 64)),
    arrays.complex_number_dtypes(endianness="?", sizes=(64, 128)),
    arrays.datetime64_dtypes(endianness="?"),
    arrays.timedelta64_dtypes(endianness="?"),
    arrays.unicode_string_dtypes(endianness="?"),
    arrays.byte_string_dtypes(endianness="?"),
)
SHAPES = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
ARRAYS = st.builds(
    lambda array, order: np.array(array, order=order),
    arrays.arrays(DTYPES, SHAPES),
    st.sampled_from("CF"),
)
PLAIN = st.one_of(
    st.booleans(),
    st.integers(),
    st.integers(10**30, 10**40),
    st.floats(),
    st.text(st.characters()),
    ARRAYS,
    ARRAYS.filter(lambda array: array.size).map(lambda array: array.flat[0]),
)
VALUES = PLAIN | st.dictionaries(st.text() | st.integers(), PLAIN, max_size=4)


@given(VALUES)
def test_an_attribute_comes_back_exactly(value):
    assert same(again(value), value)


@given(ARRAYS)
def test_an_array_that_came_back_can_be_changed(array):
    back = again(array)
    assert back.flags.writeable
    assert not np.shares_memory(back, array)


@pytest.mark.parametrize("text", ["", "a\0b", "\ud800", "ä" * 1_000])
def test_any_text_comes_back(text):
    assert same(again(text), text)


def test_an_array_that_is_part_of_another_comes_back_as_a_whole():
    part = np.arange(24).reshape(4, 6)[::2, 1::3]
    assert np.array_equal(again(part), part)


def test_what_was_captured_does_not_change():
    operator = Kept(np.zeros(3))
    written = Written(operator.capture(full=False))
    operator.value += 1
    assert written.read().full


@dataclass
class Odd:
    n: int = 0


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (None, "'value' is NoneType None"),
        ([1], r"'value' is list \[1\]"),
        ((1,), r"'value' is tuple \(1,\)"),
        (b"x", "'value' is bytes"),
        (Odd(), "'value' is Odd"),
        (defaultdict(int), "'value' is defaultdict"),
        (OrderedDict(), "'value' is OrderedDict"),
        (np.array([None]), "'value' is an array of object"),
        (np.zeros(2, "i4,i4"), "'value' is an array of "),
        (np.zeros(2, np.longdouble), "'value' is an array of float128"),
        (np.ma.array([1]), "'value' is MaskedArray"),
        ({"a": {"b": 1}}, r"'value\['a'\]' is dict"),
        ({"a": [1]}, r"'value\['a'\]' is list"),
        ({1.5: 1}, r"'value' has the key 1.5: it can be saved with texts and ints"),
        ({True: 1}, "'value' has the key True"),
    ],
)
def test_anything_else_is_refused_with_the_name_of_the_attribute(value, named):
    with pytest.raises(OperatorFailed, match=named):
        Guard("mine", Kept(value)).capture(full=True)


# In a dataflow.


class Totals(sl.Operator):
    """Sums per key, how many records there were, and the last batch."""

    saved = ("sums", "n", "last", "by_key")

    def __init__(self):
        self.sums = np.zeros(3, np.int64)
        self.n = 0
        self.last = ""
        self.by_key = {}

    def process(self, port, batch):
        np.add.at(self.sums, batch["page"], 1)
        self.n += batch.length
        self.last = f"{self.last[-5:]}{batch['page'][-1]}"
        for page in batch["page"].tolist():
            self.by_key[page] = self.by_key.get(page, 0.0) + 0.5
        sums, halves = self.sums[batch["page"]], [self.by_key[p] for p in batch["page"].tolist()]
        tails = [self.last] * batch.length
        n = np.full(batch.length, self.n)
        return [("out", Batch.of(sums=sums, n=n, tails=tails, halves=halves))]


class Forgetful(Totals):
    saved = ("sums", "last", "by_key")


class Both(Totals):
    def capture(self, *, full):
        return super().capture(full=full)


class Missing(Totals):
    saved = ("sums", "m")


class OneText(Totals):
    saved = "sums"


class Twice(Totals):
    saved = ("n", "n")


class Unset(Totals):
    def __init__(self):
        super().__init__()
        self.last = None


def flow_of(operator):
    flow = Dataflow("pages")
    pages = generated(lambda n: {"page": n % 3}, rate=200, name="pages")
    flow.source(pages, name="pages").apply(operator, name="totals").sink("out")
    return flow.bind(1, 1_000)


@pytest.mark.parametrize("lean", [False, True], ids=["apart", "lean"])
def test_an_operator_with_saved_attributes_survives_a_restore(lean):
    deployment = deploy(flow_of(Totals), 1, lean=lean)
    assert rehearse(deployment, 0)[1] is None
    assert deployment.plans["out/0" if lean else "totals/0"].policy.saved


def test_an_attribute_that_is_not_named_is_missed():
    complaint = rehearse(deploy(flow_of(Forgetful), 1), 0)[1]
    assert complaint.certain
    assert "does not go on as before once it was restored" in complaint.because


@pytest.mark.parametrize(
    ("operator", "message"),
    [
        (Both, r"'totals' cannot be saved: it has saved and its own capture\(\)"),
        (Missing, "'totals' cannot be saved: saved names 'm', which it does not have"),
        (OneText, "'totals' cannot be saved: saved is a tuple of different names"),
        (Twice, "'totals' cannot be saved: saved is a tuple of different names"),
        (Unset, "'totals' cannot be saved: 'last' is NoneType None"),
    ],
)
def test_what_cannot_be_saved_is_said_before_anything_runs(operator, message):
    with pytest.raises(GraphError, match=message):
        deploy(flow_of(operator), 1)
