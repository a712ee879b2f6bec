"""The barrier against a plain model, through captures, deltas and crashes; and how it is written."""

from collections import defaultdict, deque
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from operator_models import Model, check, plain, stories

from snapline.batch import Batch, Words
from snapline.dataflow.deploy import deploy
from snapline.dataflow.graph import Dataflow
from snapline.dataflow.operators import barrier as module
from snapline.dataflow.operators.barrier import Barrier, BarrierPlan
from snapline.errors import GraphError
from snapline.workload.common.own import generated

pytestmark = pytest.mark.usefixtures("both_forms")

KEYS = {
    "int": st.integers(0, 3) | st.sampled_from([-(2**63), 2**63 - 1]),
    "str": st.sampled_from(["", "a", "b", "ab", "a\0"]),
}
WORDS = st.sampled_from(["ada", "bob", ""])


class BarrierModel(Model):
    """A queue for each key and input; whenever none of a key is empty, one of each leaves."""

    def __init__(self, keys, ports):
        self.keys = dict(zip(ports, keys, strict=True))
        self.waiting = defaultdict(lambda: {port: deque() for port in ports})

    def take(self, port, row, found):
        waiting = self.waiting[tuple(row[name] for name in self.keys[port])]
        waiting[port].append(row)
        if all(waiting.values()):
            found["out"].append(self.paired([each.popleft() for each in waiting.values()]))

    def paired(self, rows):
        result = dict(rows[0])
        for number, (row, keys) in enumerate(
            zip(rows[1:], [*self.keys.values()][1:], strict=True), 2
        ):
            first = next(iter(self.keys.values()))
            shared = [a for a, b in zip(keys, first, strict=True) if a == b]
            result |= {
                f"{name}_{number}" if name in result else name: value
                for name, value in row.items()
                if name not in shared
            }
        return result


def rows_of(key):
    left = st.fixed_dictionaries({"id": key, "price": st.integers(0, 99)})
    right = st.fixed_dictionaries({"owner": key, "price": st.integers(0, 99), "name": WORDS})
    return left, right


@pytest.mark.parametrize("few", [0, 1_024], ids=["moving", "usual"])
@pytest.mark.parametrize("kind", KEYS)
def test_the_nth_records_of_a_key_come_together(kind, few, monkeypatch):
    monkeypatch.setattr(module, "_FEW", few)
    plan = BarrierPlan.of([("id",), ("owner",)], by_value=False)
    left, right = rows_of(KEYS[kind])

    @given(stories({"in": left, "in-2": right}))
    def holds(story):
        check(partial(Barrier, plan), BarrierModel(plan.keys, plan.ports), story, plain)

    holds()


@pytest.mark.parametrize("few", [0, 1_024], ids=["moving", "usual"])
def test_without_a_key_the_nth_records_of_all_come_together(few, monkeypatch):
    monkeypatch.setattr(module, "_FEW", few)
    plan = BarrierPlan.of([(), ()], by_value=False)
    left, right = rows_of(KEYS["int"])

    @given(stories({"in": left, "in-2": right}))
    def holds(story):
        check(partial(Barrier, plan), BarrierModel(plan.keys, plan.ports), story, plain)

    holds()


@given(st.data())
def test_more_than_two_inputs_wait_for_the_last_of_them(data):
    plan = BarrierPlan.of([("id", "n"), ("id", "n"), ("id", "m")], by_value=True)
    small = st.integers(0, 1)
    rows = {
        port: st.fixed_dictionaries({"id": small, name: small, "name": WORDS})
        for port, name in zip(plan.ports, "nnm", strict=True)
    }
    story = data.draw(stories(rows))
    check(partial(Barrier, plan), BarrierModel(plan.keys, plan.ports), story, plain)


def test_a_key_may_be_a_column_of_words():
    barrier = Barrier(BarrierPlan.of([("id",), ("id",)], by_value=False))
    words = Words(np.array([1, 0, 1], np.int32), ("a", "b"))
    barrier.process("in", Batch.of(id=words, n=[1, 2, 3]))
    ((_, found),) = barrier.process("in-2", Batch.of(id=["b", "b", "c", "a"], m=[4, 5, 6, 7]))
    assert found.rows() == [("b", 1, 4), ("b", 3, 5), ("a", 2, 7)]


def test_results_come_in_the_order_of_the_records_that_complete_them():
    barrier = Barrier(BarrierPlan.of([("id",), ("id",)], by_value=False))
    barrier.process("in", Batch.of(id=[5, 6, 7], n=[50, 60, 70]))
    ((_, found),) = barrier.process("in-2", Batch.of(id=[7, 5, 6], m=[1, 2, 3]))
    assert found.rows() == [(7, 70, 1), (5, 50, 2), (6, 60, 3)]


def test_nothing_is_kept_of_what_has_left():
    barrier = Barrier(BarrierPlan.of([("id",), ("id",)], by_value=True))
    for first in range(0, 20_000, 500):
        ids = np.arange(first, first + 500)
        barrier.process("in", Batch.of(id=ids))
        barrier.process("in-2", Batch.of(id=ids[::-1]))
    parts = barrier.capture(full=True).parts
    assert [name for name, part in parts.items() if part.length] == ["arrived"]
    assert sum(each.rows.length for each in barrier._state.waiting) < 4_000


def test_a_delta_is_what_is_new_and_what_has_gone():
    barrier = Barrier(BarrierPlan.of([(), ()], by_value=False))
    barrier.process("in", Batch.of(n=[1, 2, 3]))
    barrier.capture(full=True)
    barrier.process("in-2", Batch.of(m=[10]))
    barrier.process("in", Batch.of(n=[4]))
    delta = barrier.capture(full=False)
    assert not delta.full
    assert {name: part.to_pydict() for name, part in delta.parts.items() if part.length} == {
        "in": {"n": [4], "(number)": [3]},
        "in-gone": {"(number)": [0]},
        "arrived": {"(number)": [4, 1]},
    }


# In a dataflow.


def streams(*names):
    flow = Dataflow("f")
    return flow, [
        flow.source(generated(lambda n: {"page": n % 3, "n": n}, rate=10, name=name), name=name)
        for name in names
    ]


def test_a_barrier_is_fed_by_all_its_streams():
    flow, (a, b, c) = streams("a", "b", "c")
    a.key_by("page").barrier(b.key_by("page"), c.key_by("n"), name="all").sink("out")
    ports = {edge.source: edge.port for edge in flow.graph.inputs("all")}
    assert ports == {"a": "in", "b": "in-2", "c": "in-3"}
    deploy(flow.bind(1, 1_000), 2)


def test_by_routes_the_streams():
    flow, (a, b) = streams("a", "b")
    a.barrier(b, by="page", name="pairs").sink("out")
    assert [edge.routing.columns for edge in flow.graph.inputs("pairs")] == [("page",), ("page",)]


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda a, b: a.barrier(), "name another, as in a.barrier"),
        (lambda a, b: a.barrier("b"), "barrier takes streams, not 'b'"),
        (lambda a, b: a.key_by("page").barrier(b), "the same number of columns on all sides"),
        (lambda a, b: a.barrier(b.key_by("page")), "the same number of columns on all sides"),
        (lambda a, b: a.key_by("page").barrier(b.key_by("page"), by="n"), "leave out key_by"),
        (lambda a, b: a.barrier(b.broadcast()), "leave out broadcast"),
        (lambda a, b: a.barrier(b, by="pgae"), "has no column pgae to key by"),
        (lambda a, b: a.barrier(b, by=3), "by= takes the name of a column"),
    ],
)
def test_what_cannot_be_is_said_when_the_flow_is_built(write, message):
    _, both = streams("a", "b")
    with pytest.raises(GraphError, match=message):
        write(*both)


def test_columns_keep_their_names_as_far_as_they_can():
    plan = BarrierPlan.of([("k",), ("k",), ("j",)], by_value=False)
    names = plan.names([("k", "price"), ("k", "price", "time"), ("j", "price", "price_3", "k")])
    assert names == [
        {"k": "k", "price": "price"},
        {"price": "price_2", "time": "time"},
        {"j": "j", "price": "price_3", "price_3": "price_3_3", "k": "k_3"},
    ]
