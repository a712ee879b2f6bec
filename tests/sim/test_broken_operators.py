"""An operator that is broken on purpose turns the verdict red, and the verdict names a record."""

import re

import numpy as np
import pytest
from sim_runs import Case, kept, simulate

from snapline.dataflow.operators.fold import Count
from snapline.dataflow.operators.join import Join, WindowJoin
from snapline.dataflow.operators.operator import OUT
from snapline.dataflow.operators.stateless import Map
from snapline.dataflow.operators.window_count import WindowCount


def change_once(monkeypatch, operator, change):
    """Let an operator change the first output that it gives in a run."""
    original = operator.process
    changed = []

    def process(self, port, batch):
        outputs = []
        for name, out in original(self, port, batch):
            if name == OUT and out.length and not changed:
                changed.append(self)
                out = change(out)
            outputs.append((name, out))
        return outputs

    monkeypatch.setattr(operator, "process", process)


def drop_a_row(out):
    return out.slice(1, out.length)


def repeat_a_row(out):
    return out.take(np.arange(-1, out.length).clip(0))


def count_one_more(out):
    return out.with_columns(count=out["count"] + 1)


def pay_one_cent_more(out):
    return out.with_columns(price=out["price"] + 1)


def verdict(workload, seed=3):
    """What the judge says of a run without any fault."""
    violation = simulate(Case("aligned", workload, seed, records=30, faults="")).violation
    assert violation is not None
    assert violation.name == "output_is_exactly-once"
    return violation.story


@pytest.mark.parametrize("workload", ["counting", "q1", "q3", "q8", "q12"])
def test_as_they_are_the_operators_are_right(workload):
    kept(Case("aligned", workload, 3, records=30, faults=""))


@pytest.mark.parametrize(
    ("workload", "operator", "change", "story"),
    [
        ("q3", Join, drop_a_row, r"missing auction \d+ with person \d+"),
        ("q3", Join, repeat_a_row, r"duplicate auction \d+ with person \d+"),
        ("q8", WindowJoin, drop_a_row, r"missing auction \d+ with person \d+"),
        ("q12", WindowCount, count_one_more, r"(duplicate|wrong|missing) count of bidder \d+"),
        ("q12", WindowCount, drop_a_row, r"(duplicate|wrong|missing) (count of )?bid"),
        ("q1", Map, pay_one_cent_more, r"wrong bid \d+:\d+: it came out as .*; right is"),
        ("counting", Count, count_one_more, r"(duplicate|wrong|missing) count of key \d+"),
        ("counting", Count, drop_a_row, r"missing record \d+:\d+"),
    ],
)
def test_a_broken_operator_is_found_out(monkeypatch, workload, operator, change, story):
    change_once(monkeypatch, operator, change)
    assert re.match(story, verdict(workload))


def test_an_operator_that_forgets_at_a_restore_is_found_out(monkeypatch):
    """What it gives is right as long as nothing fails: only the crash shows it."""
    case = Case("aligned", "q3", 3, faults="kill slot=1 at=1500ms")
    assert kept(case).crashed_after_commit
    monkeypatch.setattr(Join, "restore", lambda self, captures: None)
    violation = simulate(case).violation
    assert violation is not None
    assert re.match(r"missing auction \d+ with person \d+", violation.story)
    kept(Case("aligned", "q3", 3, faults=""))
