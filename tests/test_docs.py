"""The pages of documentation are run: what a reader copies works."""

import re
from pathlib import Path

import pytest

import snapline as sl
from snapline.dataflow.graph import deploy
from snapline.engine.reference.reference import reference_output

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def flows():
    """The dataflows that the page builds, in order."""
    text = (ROOT / "docs" / "flows.md").read_text()
    names: dict[str, object] = {}
    found = []
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        names.pop("flow", None)
        exec(block, names)
        if "flow" in names:
            found.append(names["flow"])
    return {flow.name: flow for flow in found}


def output(flow, seconds=4):
    return reference_output(deploy(flow.bind(2, seconds * 1_000), 2), 0)


def test_windows_close_and_nothing_is_late(flows):
    busy = output(flows["busy bidders"])
    assert len(busy["busy"]) > 100
    assert busy["busy"]["highest"].min() > 50_000
    assert len(busy["late"]) == 0


def test_an_operator_of_ones_own_keeps_its_state(flows):
    highest = output(flows["highest"])["highest"]
    by_bidder: dict[int, list[int]] = {}
    for bidder, price in highest.rows():
        by_bidder.setdefault(bidder, []).append(price)
    assert all(prices == sorted(set(prices)) for prices in by_bidder.values())
    copy = flows["highest"].graph.nodes["rises"].factory()
    copy.process("in", sl.Batch.of(bidder=[1, 2, 1], price=[5, 6, 7]))
    again = flows["highest"].graph.nodes["rises"].factory()
    again.restore([copy.capture(full=True)])
    assert again.highest == {1: 7, 2: 6}


def test_a_cycle_ends_where_it_should(flows):
    lengths = output(flows["collatz"])["lengths"]
    steps = dict(zip(lengths["start"].tolist(), lengths["steps"].tolist(), strict=True))
    assert sorted(steps) == list(range(1, 401))
    assert (steps[1], steps[6], steps[27]) == (0, 8, 111)
