"""Pages in a real browser, one for all: nothing is fetched, nothing complains, nothing overflows."""

import os
from dataclasses import replace

import pytest

from browser import Browser, find_browser
from growing_run import GrowingRun
from reported_runs import a_comparison, a_paper, crashed_run
from snapline.report.live.follower import JournalFollower
from snapline.report.live.server import LiveServer
from snapline.report.page.comparison import comparison_page
from snapline.report.page.paper import paper_page
from snapline.report.page.run_page import run_page

WIDTHS = (390, 820, 1440)


def page_of_a_run():
    return run_page([crashed_run()])


def page_of_two_runs():
    other = crashed_run("aligned", 3)
    broken = [{"kind": "missing", "record": "bid 17 " * 30, "because": "it is gone " * 20}]
    return run_page([crashed_run(), replace(other, kept="no", problems=broken)])


PAGES = {
    "run": page_of_a_run,
    "runs": page_of_two_runs,
    "comparison": lambda: comparison_page(a_comparison()),
    "paper": lambda: paper_page(a_paper()),
}


@pytest.fixture(scope="module")
def browser():
    try:
        find_browser()
    except AssertionError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    with Browser() as started:
        yield started


@pytest.fixture(scope="module", params=PAGES)
def opened(request, browser, tmp_path_factory):
    """A page, opened from a file as a colleague would."""
    path = tmp_path_factory.mktemp("pages") / f"{request.param}.html"
    path.write_text(PAGES[request.param](), encoding="utf-8")
    tab = browser.open(path)
    yield tab
    tab.close()


def test_nothing_is_fetched_and_nothing_complains(opened):
    assert [url for url in opened.requests if not url.startswith("file:")] == []
    assert len(opened.requests) == 1
    assert opened.complaints == []


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_does_not_scroll_sideways(opened, width):
    opened.resize(width)
    assert opened.eval("document.documentElement.scrollWidth") <= width
    # Nor does anything stick out of it that does not scroll by itself.
    beyond = """[...document.querySelectorAll(".snapline *")].filter((e) => e.checkVisibility() &&
      !e.closest(".scroll, .spacetime, svg") && e.getBoundingClientRect().right > innerWidth + 1)
      .map((e) => e.tagName + "." + e.className)"""
    assert opened.eval(beyond) == []


@pytest.mark.parametrize("width", WIDTHS)
def test_every_chart_that_shows_has_marks_and_readable_letters(opened, width):
    opened.resize(width)
    charts = opened.eval(
        """[...document.querySelectorAll("svg.chart")].filter((e) => e.checkVisibility()).map((e) => ({
          name: e.getAttribute("aria-label"), width: e.getBoundingClientRect().width,
          marks: e.querySelectorAll(".mark").length, scale: e.getScreenCTM().a,
          letters: Math.min(...[...e.querySelectorAll("text")].map((t) =>
            parseFloat(getComputedStyle(t).fontSize) * e.getScreenCTM().a))}))"""
    )
    figures = opened.eval('document.querySelectorAll("figure:not([id$=diagram])").length')
    assert len(charts) == figures > 0
    assert [chart["name"] for chart in charts if not chart["marks"] or chart["width"] < 300] == []
    assert [chart["name"] for chart in charts if chart["letters"] < 9] == []


@pytest.mark.parametrize("width", WIDTHS)
def test_no_two_texts_of_a_chart_overlap(opened, width):
    opened.resize(width)
    # Labels of checkpoints may touch the line, but not each other: a quarter of a letter is tolerated.
    overlapping = opened.eval(
        """[...document.querySelectorAll("svg.chart")].filter((e) => e.checkVisibility()).flatMap((e) => {
          const texts = [...e.querySelectorAll("text")].map(
            (t) => [t.textContent, t.getBoundingClientRect()]);
          return texts.flatMap(([a, p], i) => texts.slice(i + 1).filter(([b, q]) =>
            Math.min(p.right, q.right) - Math.max(p.left, q.left) > 3 &&
            Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top) > 4).map(([b]) =>
            e.getAttribute("aria-label") + ": " + a + " | " + b));
        })"""
    )
    assert overlapping == []


def test_dark_screens_get_a_dark_page_with_enough_contrast(opened):
    opened.resize(820, dark=True)
    colours = opened.eval(
        """[document.documentElement, document.querySelector("h1"), document.querySelector("figure")]
          .map((e) => getComputedStyle(e)).map((s) => [s.backgroundColor, s.color])"""
    )
    ground, ink = luminance(colours[0][0]), luminance(colours[1][1])
    assert ground < 0.05 < 0.6 < ink
    assert luminance(colours[2][0]) < 0.05
    opened.resize(820)
    light = opened.eval("getComputedStyle(document.documentElement).backgroundColor")
    assert luminance(light) > 0.8


def luminance(colour):
    """The relative luminance of `rgb(1, 2, 3)`, as the guidelines for accessible pages define it."""
    parts = [int(part) / 255 for part in colour.partition("(")[2].rstrip(")").split(",")[:3]]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_a_screen_reader_gets_a_name_for_everything_that_it_stops_at(opened):
    nodes = opened.call("Accessibility.getFullAXTree")["nodes"]
    kinds = {
        "img",
        "image",
        "link",
        "region",
        "navigation",
        "heading",
        "figure",
        "DisclosureTriangle",
    }
    told = [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in nodes
        if not node.get("ignored") and node["role"]["value"] in kinds
    ]
    named = {"img", "image", "link", "region", "navigation", "heading", "DisclosureTriangle"}
    assert [each for each in told if each[0] in named and not each[1].strip()] == []
    assert {"heading", "link", "DisclosureTriangle"} <= {kind for kind, _ in told}
    charts = opened.eval('document.querySelectorAll("figure:not([id$=diagram])").length')
    assert len({name for kind, name in told if kind in ("img", "image")}) >= min(charts, 3)


def test_the_keyboard_reaches_and_opens_the_numbers_behind_a_chart(opened):
    opened.eval('document.querySelector("figure summary").focus()')
    for kind in ("keyDown", "keyUp"):
        opened.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", text="\r")
    opened.until('document.querySelector("figure details").open')
    assert opened.eval('document.querySelector("figure tbody tr").checkVisibility()')
    assert opened.eval('document.querySelectorAll("figure tbody")[0].rows.length') > 0


def test_pointing_at_a_mark_tells_its_values(opened):
    opened.resize(1440)
    where = opened.eval(
        """(() => { const e = document.querySelector(".wide .mark").lastElementChild;
          e.scrollIntoView({block: "center"});
          const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()"""
    )
    opened.call("Input.dispatchMouseEvent", type="mouseMoved", x=where[0], y=where[1])
    opened.until('!document.querySelector(".tip").hidden')
    assert len(opened.eval('document.querySelector(".tip").textContent')) > 5
    assert opened.complaints == []


def test_a_live_page_grows_and_a_reload_loses_nothing(browser, tmp_path):
    run = GrowingRun(tmp_path)
    run.grow(0.3)
    server = LiveServer(JournalFollower(run.directory))
    server.start(nice=False)
    try:
        pages = [browser.open(server.url, width) for width in (1440, 390)]
        rows = "document.querySelectorAll('#rates tbody')[0].rows.length"
        before = [page.eval(rows) for page in pages]
        pages[0].eval('document.querySelector("#rates details").open = true')
        run.grow(1)
        for page, seen in zip(pages, before, strict=True):
            page.until(f"{rows} > {seen}")
            page.until("document.getElementById('failure-1') !== null")
        assert pages[0].eval(
            'document.querySelector("#rates details").open'
        )  # it was opened before
        told = pages[0].eval('document.querySelector("article").innerText')
        pages[0].call("Page.reload")
        pages[0].until("document.querySelectorAll('#failure-1').length === 1")
        again = pages[0].eval('document.querySelector("article").innerText')
        assert "slot 1 lost at" in told
        assert "slot 1 lost at" in again
        for page in pages:
            assert page.complaints == []
            assert {url.partition("?")[0] for url in page.requests} <= {
                server.url,
                f"{server.url}events",
            }
            assert page.eval("document.documentElement.scrollWidth <= innerWidth")
    finally:
        server.stop()
    pages[1].until("document.querySelector('.live').textContent.includes('has ended')")
