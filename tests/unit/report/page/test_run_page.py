"""The page about a run: every chart has a title and its numbers, what was read never becomes markup."""

import base64
import csv
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from reported_runs import KILL, crashed_run
from snapline.core.effects import Rollback
from snapline.core.events import SnapshotStored, TasksLost
from snapline.core.messages import CheckpointMeta, RecoveryLine
from snapline.journal.entry import COORDINATOR, Handled, Happened
from snapline.journal.happenings import JobRunning, SlotLost
from snapline.metrics.figures import Figures
from snapline.metrics.json_form import from_json
from snapline.metrics.seconds_table import SecondRow
from snapline.report.page.html import DataTable, document, download
from snapline.report.page.run_page import run_card, run_page
from snapline.report.run.reported import RUNNING

VOID = {"meta", "br", "hr", "img", "input", "link"}
EVIL = "<img src=x onerror=alert(1)>&\"'"


class Elements(HTMLParser):
    """All elements of a page, with the text of each; raises if they are not nested as they must be."""

    def __init__(self, text):
        super().__init__()
        self.open = []
        self.found = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        element = {"tag": tag, "text": "", **dict(attrs), "parents": [e["tag"] for e in self.open]}
        self.found.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open.pop()["tag"] == tag

    def handle_data(self, data):
        for element in self.open:
            element["text"] += data

    def all(self, tag, **attributes):
        return [
            element
            for element in self.found
            if element["tag"] == tag
            and all(element.get(name.rstrip("_")) == value for name, value in attributes.items())
        ]


@pytest.fixture(scope="module")
def page():
    return Elements(run_page([crashed_run()]))


def test_equal_runs_give_equal_bytes():
    assert run_page([crashed_run()]) == run_page([crashed_run.__wrapped__()])


def test_the_page_has_all_its_charts(page):
    ids = [figure["id"] for figure in page.all("figure")]
    charts = ["rates", "backlog", "latency", "failure-1", "graph-1", "history", "bytes"]
    assert ids == [*charts, "slots", "diagram"]
    assert [heading["text"] for heading in page.all("h2")] == [
        "Rates, backlog, latency",
        "Failures",
        "What happened",
        "Checkpoints",
        "Costs",
        "Slots",
        "Space and time",
        "Guarantees",
        "Data",
    ]


def test_every_chart_has_a_name_and_stands_on_both_papers(page):
    charts = page.all("svg", class_="chart")
    assert len(charts) == 16
    assert all(chart["role"] == "img" and len(chart["aria-label"]) > 20 for chart in charts)
    assert [c["viewbox"].split()[2] for c in charts] == ["880", "358"] * 8


def test_behind_every_chart_there_are_its_numbers_as_a_table_and_as_a_file(page):
    links = {link["download"]: link["href"] for link in page.all("a") if "download" in link}
    rates = read_csv(links["counting-uncoordinated-calm-ember-rates.csv"])
    assert rates[0] == ["second", "slots running", "read", "written", "published", "backlog"]
    assert rates[1][:4] == ["0", "3", "1000", "1000"]
    assert len(rates) == 1 + len([row for row in crashed_run().seconds if row.slot is None])
    whole = json.loads(unpacked(links["counting-uncoordinated-calm-ember.json"]))
    assert whole["metrics"] == crashed_run().metrics
    assert whole["command"].startswith("snapline simulate --protocol uncoordinated")


def unpacked(link):
    return base64.b64decode(link.partition("base64,")[2]).decode()


def read_csv(link):
    return list(csv.reader(io.StringIO(unpacked(link))))


def test_the_head_says_the_verdict_and_tells_the_run_in_three_sentences(page):
    run = crashed_run()
    (verdict,) = page.all("div", class_="verdict yes")
    assert (
        verdict["text"] == "✓kept: the published output is what the oracle expects (exactly-once)"
    )
    told = [p["text"] for p in page.all("p")]
    read = f"{run.figures.records_read:,} records were read"
    assert any("counting ran under uncoordinated in 3 slots" in t and read in t for t in told)
    assert any(f"The fault '{KILL}' struck: 1 slot was lost" in t for t in told)
    assert any(f"{run.figures.checkpoints.stored} checkpoints were stored" in t for t in told)
    assert page.all("span", class_="badge")[0]["text"] == "real run"


def test_a_simulated_run_says_that_it_is_one():
    page = Elements(run_page([replace(crashed_run(), simulated=True)]))
    assert page.all("span", class_="badge")[0]["text"].startswith("simulated run")


def test_the_fault_is_shaded_where_it_was_active_and_the_epoch_marked(page):
    titles = [title["text"] for title in page.all("title")]
    assert any(re.fullmatch(rf"{KILL}: 24\.0\d s to 2\d\.\d\d s", title) for title in titles)
    assert any(re.fullmatch(r"epoch 2 begins at 2\d\.\d\d s", title) for title in titles)


def test_what_was_read_from_a_run_is_never_markup():
    run = crashed_run()
    evil = replace(
        run,
        name=EVIL,
        command=EVIL,
        because=EVIL,
        kept="no",
        settings={"flow": EVIL, "protocol": EVIL, EVIL: EVIL},
        guarantees={EVIL: EVIL},
        problems=[{"kind": EVIL, "record": EVIL, "because": EVIL}],
        strikes=[{"statement": EVIL, "struck": True, "at_ms": 3}],
        faults=[fault._replace(text=EVIL) for fault in run.faults],
        rows={EVIL: 1},
        environment={EVIL: [EVIL]},
        gap=EVIL,
    )
    page = Elements(run_page([evil, evil]))
    assert not page.all("img")
    assert len(page.all("script")) == 1
    assert not [e for e in page.found if any(name.startswith("on") for name in e)]
    assert page.all("strong", class_="no")[0]["text"] == "broken"
    assert EVIL in page.all("h1")[1]["text"]


def test_a_figure_that_is_no_number_is_shown_as_it_is():
    run = crashed_run()
    metrics = json.loads(json.dumps(run.metrics))
    metrics["rate"]["read"] = float("nan")
    metrics["failures"][0]["from_detection"]["backlog"]["s"] = float("inf")
    broken = replace(run, metrics=metrics, figures=from_json(Figures, metrics))
    page = Elements(run_page([broken]))
    assert page.all("dl", class_="tiles")[0]["text"].startswith("records readnan per second")


def test_a_formula_in_a_table_is_no_formula_in_a_spreadsheet():
    rows = [replace(row, task="=HYPERLINK(1)") for row in crashed_run().checkpoints[:1]]
    page = Elements(run_page([replace(crashed_run(), checkpoints=rows)]))
    links = {link["download"]: link["href"] for link in page.all("a") if "download" in link}
    table = read_csv(links["counting-uncoordinated-calm-ember-checkpoints.csv"])
    assert table[1][0] == "'=HYPERLINK(1)"


def test_the_page_may_fetch_nothing(page):
    (policy,) = [m["content"] for m in page.all("meta") if "http-equiv" in m]
    assert "default-src 'none'" in policy
    assert "connect-src 'none'" in policy
    outside = [e for e in page.found if e.get("src") or e["tag"] in {"link", "iframe", "object"}]
    assert not outside
    hrefs = {link["href"].partition(",")[0] for link in page.all("a") if link["href"][0] != "#"}
    assert hrefs == {"data:text/csv;base64", "data:application/json;base64"}


def test_ids_are_unique_and_links_lead_somewhere():
    page = Elements(run_page([crashed_run(), crashed_run("aligned", 3)]))
    ids = [element["id"] for element in page.found if "id" in element]
    assert sorted(set(ids)) == sorted(ids)
    targets = {link["href"][1:] for link in page.all("a") if link["href"].startswith("#")}
    assert targets <= set(ids)
    assert {"r1", "r2", "r1-traffic", "r2-checkpoints"} <= targets


def test_a_run_that_is_not_over_a_run_without_seconds_and_one_of_another_system_have_pages():
    bare = replace(crashed_run(), kept=RUNNING, seconds=(), checkpoints=(), entries=(), journal=())
    page = Elements(run_page([replace(bare, figures=None, metrics={}, faults=(), topology=None)]))
    assert not page.all("figure")
    assert page.all("strong", class_="running")[0]["text"] == "not over"
    assert [heading["text"] for heading in page.all("h2")] == ["Guarantees", "Data"]


def test_an_hour_of_a_hundred_slots_is_below_two_megabytes():
    rows = [
        SecondRow(second, slot, 100, second, 2, 3, 0.5, 1.5, 7, 2_000.0, 3_000.0)
        for second in range(3_600)
        for slot in (None, *range(100))
    ]
    many = crashed_run().checkpoints * 40
    page = run_page([replace(crashed_run(), seconds=rows, checkpoints=many)])
    assert len(page.encode()) < 2_000_000
    assert "rows)" in page  # tables that were cut say so


def broken_again_and_again(run, times, between):
    """A run whose slot 1 is lost so many times, with so many checkpoints of each task in between."""
    tasks = run.topology.tasks
    entries = [Happened(0, COORDINATOR, 1, JobRunning())]
    for epoch in range(1, times + 1):
        at_us, last = epoch * 1_000_000, epoch * between
        for number in range(last - between + 1, last + 1):
            events = [SnapshotStored(CheckpointMeta(task, number)) for task in tasks]
            entries += [Handled(at_us, COORDINATOR, epoch, 0, event, ()) for event in events]
        line = RecoveryLine(dict.fromkeys(tasks, last - 1))
        entries += [
            Happened(at_us + 1, COORDINATOR, epoch, SlotLost(1, epoch)),
            Handled(at_us + 1, COORDINATOR, epoch, 0, TasksLost(tasks[:1]), (Rollback(line),)),
            Happened(at_us + 2, COORDINATOR, epoch + 1, JobRunning()),
        ]
    return replace(run, entries=entries, journal=entries)


def test_eight_failures_with_thousands_of_checkpoints_are_below_two_megabytes():
    rows = [
        SecondRow(second, slot, 100, second, 2, 3, 0.5, 1.5, 7, 2_000.0, 3_000.0)
        for second in range(3_600)
        for slot in (None, *range(100))
    ]
    run = crashed_run()
    many = broken_again_and_again(run, times=8, between=400)
    strikes = [{"statement": KILL, "struck": True, "at_ms": at} for at in range(3_000)]
    large = replace(many, seconds=rows, checkpoints=run.checkpoints * 40, strikes=strikes)
    text = run_page([large])
    assert len(text.encode()) < 2_000_000
    page = Elements(text)
    links = {link["download"]: link["href"] for link in page.all("a") if "download" in link}
    graph = read_csv(links["counting-uncoordinated-calm-ember-graph-8.csv"])
    assert len(graph) == 1 + 8 * len(run.topology.tasks)
    told = " ".join(p["text"] for p in page.all("p"))
    left = 8 * 400 * len(run.topology.tasks) - 7 * len(run.topology.tasks)
    left -= 8 * len(run.topology.tasks)
    assert f"{left:,} more checkpoints are in the history of checkpoints" in told
    whole = json.loads(unpacked(links["counting-uncoordinated-calm-ember.json"]))
    assert len(whole["faults"]) == 200
    assert "faults has 3,000" in told
    assert "and 2,700 more faults." in told


def test_the_largest_files_are_left_out_of_a_page_that_would_be_too_large():
    table = DataTable("large", ("row", "words"), [(n, "x" * 80) for n in range(5_000)])
    small = DataTable("small", ("row",), [(1,)])
    files = [download(small), *(download(replace(table, name=f"large-{n}")) for n in range(20))]
    text = document("many", "".join(files))
    names = {link["download"] for link in Elements(text).all("a")}
    assert len(text) < 2_000_000
    assert "small.csv" in names
    assert 5 < len(names) < 21
    assert text.count("(left out, because the page would be too large)") == 21 - len(names)


def test_a_notebook_shows_a_card():
    card = Elements(run_card(crashed_run()))
    assert not card.all("script")
    assert len(card.all("svg")) == 2
    assert card.all("div", class_="verdict yes")
