"""The pages of documentation are run: what a reader copies works, and what a link names is there."""

import re
from pathlib import Path
from typing import Any

import pytest

import snapline as sl
from snapline.dataflow.deploy import deploy
from snapline.engine.reference.reference import reference_output

ROOT = Path(__file__).parent.parent


PAGES = [
    *sorted((ROOT / "docs").glob("*.md")),
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")),
]


@pytest.fixture(scope="module")
def flows():
    """The dataflows that the page builds, in order."""
    text = (ROOT / "docs" / "flows.md").read_text()
    names: dict[str, Any] = {}
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


def test_attributes_that_are_named_are_kept(flows):
    means = output(flows["mean"])["means"]
    assert len(means) > 1_000
    assert means["mean"].min() > 0


def test_the_page_on_partial_fault_tolerance_builds_what_it_says():
    text = (ROOT / "docs" / "partial.md").read_text()
    names: dict[str, Any] = {}
    built = []
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(block, names)
        built.append(names["flow"])
    factory, guesses = (output(flow, seconds=2) for flow in built)
    assert set(factory) == {"predictions", "counts", "bills"}
    assert factory["bills"]["price"].tolist() == factory["bills"]["paid"].tolist()
    assert len(factory["bills"]) == 400
    assert (len(guesses["counts"]), len(guesses["guesses"])) == (100, 0)
    plans = deploy(built[0].bind(2, 1_000), 2, lean=True).plans
    saved = {
        task.partition("/")[0]: plan.policy.every_ms
        for task, plan in plans.items()
        if plan.policy.saved
    }
    assert saved == {"predictions": 1_000, "bills": 5_000}


def anchors(page):
    """The names by which links reach the headings of a page, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#\s]*)(#[^)\s]*)?\)", page.read_text())
    own = [(target, anchor) for target, anchor in links if not target.startswith("http")]
    targets = [(page.parent / target if target else page, anchor) for target, anchor in own]
    assert not [str(target) for target, _ in targets if not target.exists()]
    assert not [
        anchor for target, anchor in targets if anchor and anchor[1:] not in anchors(target)
    ]


def test_the_index_names_every_page():
    index = (ROOT / "docs" / "README.md").read_text()
    assert not [
        page.name
        for page in PAGES[:-3]
        if f"({page.name})" not in index and page.name != "README.md"
    ]


@pytest.mark.parametrize("page", ["README.md", "docs/python.md"])
def test_a_dataflow_that_a_page_shows_can_be_built_and_run(page):
    text = (ROOT / page).read_text()
    built = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0].partition("\nrun = ")[0]
    names: dict[str, object] = {}
    exec(built, names)
    assert list(output(names["flow"], seconds=1)) == ["counts"]


@pytest.mark.parametrize("life", ["run", "message", "failure"])
def test_a_life_names_files_that_exist_and_each_of_them_once(life):
    text = (ROOT / "ARCHITECTURE.md").read_text()
    section = text.partition(f" The life of a {life}\n")[2].partition("\n## ")[0]
    named = re.findall(r"`([\w/]+\.py)`", section)
    assert len(named) > 10
    assert sorted(set(named)) == sorted(named)
    assert not [name for name in named if not (ROOT / "src" / "snapline" / name).exists()]
