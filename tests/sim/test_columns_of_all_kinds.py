"""Strings as keys, lists and functions per record go through filters, shuffles, snapshots and crashes."""

from collections import Counter

import numpy as np
import pytest
from sim_runs import Case, kept

from snapline.batch import Varlen, Words
from snapline.core.guarantee import Guarantee
from snapline.dataflow.graph import Dataflow
from snapline.dataflow.operators.join import Join
from snapline.dataflow.operators.operator import Capture
from snapline.sim.run import simulate
from snapline.workload import WORKLOADS
from snapline.workload.common.base import Problem, Workload
from snapline.workload.common.generated import Generated, draw

NAME = "orders"
NAMES = tuple(f"customer {n}" * (1 + n % 3) for n in range(12))
CRASHES = "kill slot=1 at=900ms; kill slot=0 at=1600ms"


def order_fields(params, partition, offsets):
    """The customer as a string, and the items as a list of up to three, perhaps none."""
    sizes = draw(params, "items", partition, offsets, 4)
    ends = np.concatenate([[0], np.cumsum(sizes)])
    customers = Varlen.of("str", NAMES).take(draw(params, "customer", partition, offsets, 12))
    return {
        "customer": customers,
        "amount": draw(params, "amount", partition, offsets, 100),
        "items": Varlen("list", ends, np.repeat(offsets, sizes) * 7 % 100),
    }


def customer_fields(params, partition, offsets):
    """The same names as words of a dictionary, another one in every partition."""
    dictionary = NAMES[partition:] + NAMES[:partition]
    codes = draw(params, "name", partition, offsets, 12).astype(np.int32)
    return {
        "customer": Words(codes, dictionary),
        "city": Words(codes % 3, ("Bend", "Kent", "Boise")),
    }


def orders(params):
    return Generated("orders", params, order_fields, params.records)


def customers(params):
    return Generated("customers", params, customer_fields, 4)


def priced(order):
    """None for what is cheap, two records for what is dear."""
    if order["amount"] < 20:
        return None
    again = {**order, "amount": order["amount"] * 2, "items": [*order["items"], -1]}
    return [order, again] if order["amount"] > 80 else again


def build(params):
    flow = Dataflow(NAME)
    wanted = flow.source(orders(params)).filter(lambda batch: batch["amount"] % 3 != 0)
    people = flow.source(customers(params)).key_by("customer")
    wanted.map_records(priced).key_by("customer").join(people).sink("results")
    return flow


COLUMNS = ("id", "customer", "amount", "items", "id_right", "city")


def rows_of(batch):
    columns = [batch.to_pydict()[name] for name in COLUMNS]
    return Counter((*row[:3], tuple(row[3]), *row[4:]) for row in zip(*columns, strict=True))


def right(params):
    """All pairs, record by record."""
    known = [
        dict(zip(everything.columns, row, strict=True))
        for everything in [customers(params).everything()]
        for row in everything.rows()
    ]
    found = Counter()
    everything = orders(params).everything()
    for row in everything.rows():
        order = dict(zip(everything.columns, row, strict=True))
        made = priced(order) if order["amount"] % 3 else None
        for one in made if isinstance(made, list) else [made] if made else []:
            for other in known:
                if other["customer"] == one["customer"]:
                    pair = (one["id"], one["customer"], one["amount"], tuple(one["items"]))
                    found[*pair, other["id"], other["city"]] += 1
    return found


def judge(params, output, state, level):
    expected, found = right(params), rows_of(output["results"])
    assert level is Guarantee.EXACTLY_ONCE
    missing, more = expected - found, found - expected
    return [Problem("missing", str(row), "it is not there") for row in missing] + [
        Problem("duplicate", str(row), "it should not be there") for row in more
    ]


@pytest.fixture(autouse=True)
def workload(monkeypatch):
    monkeypatch.setitem(WORKLOADS.own, NAME, Workload(NAME, "all kinds", False, build, judge))


@pytest.mark.parametrize("protocol", ["aligned", "unaligned", "uncoordinated", "hmnr"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_all_kinds_of_columns_survive_crashes(protocol, seed):
    outcome = kept(Case(protocol, NAME, seed, records=60, faults=CRASHES))
    assert outcome.stats["rollbacks"]
    assert outcome.stats["commits"]


def test_there_is_something_to_be_wrong():
    pairs = right(Case("aligned", NAME, 1, records=60).params)
    assert len(pairs) > 100
    assert len({pair[1] for pair in pairs}) > 6
    assert {len(pair[3]) for pair in pairs} >= {0, 1, 2, 3}


def test_a_join_that_forgets_its_lists_is_found_out(monkeypatch):
    whole = Join.capture

    def capture(self, *, full):
        parts = whole(self, full=full).parts
        left = parts["left"]
        if "items" in left.columns:
            left = left.with_columns(items=Varlen.of("list", [[] for _ in range(len(left))]))
        return Capture(full, {**parts, "left": left})

    monkeypatch.setattr(Join, "capture", capture)
    outcome = simulate(Case("aligned", NAME, 1, records=60, faults=CRASHES))
    assert outcome.violation is not None
