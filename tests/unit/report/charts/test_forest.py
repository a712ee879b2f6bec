"""The marks of a forest plot: filled where it was measured, hollow where it was simulated."""

import re
from dataclasses import replace

import pytest

from reported_runs import a_paper
from snapline.report.charts.canvas import NARROW, WIDE
from snapline.report.charts.forest import ForestRow, forest
from snapline.report.page.paper import SIMULATED, paper_page

ROW = ForestRow("capacity", 0.8, 0.7, 0.9, "less", "less")


def drawn(*rows, canvas=WIDE):
    return forest(canvas, rows, title="ratios", axis="ratio, logarithmic")


def marks(svg):
    """The classes of all marks that are drawn in rows, without those of the legend."""
    return re.findall(r'class="((?:blob|hollow) \w+)"', svg[svg.index('<g class="mark"') :])


@pytest.mark.parametrize("kind", ["more", "less", "same"])
@pytest.mark.parametrize("canvas", [WIDE, NARROW])
def test_what_was_simulated_has_the_same_shape_and_is_hollow(kind, canvas):
    measured = drawn(replace(ROW, kind=kind), canvas=canvas)
    simulated = drawn(replace(ROW, kind=kind, simulated=True), canvas=canvas)
    assert marks(measured) == [f"blob {kind}"]
    assert marks(simulated) == [f"hollow {kind}"]
    assert "measured, with its interval" in measured
    assert "simulated" not in measured
    assert "simulated, with its interval" in simulated
    assert "measured, with" not in simulated


def test_a_single_pair_has_a_shape_of_its_own():
    alone = replace(ROW, low=None, high=None)
    assert marks(drawn(alone)) == ["blob single"]
    assert marks(drawn(alone, ROW, replace(alone, simulated=True))) == [
        "blob single",
        "blob less",
        "hollow single",
    ]
    assert "one pair: nothing is known of chance" in drawn(alone)


def test_a_scoreboard_says_what_its_marks_mean():
    page = paper_page(a_paper())
    assert "a mark is what was measured here, or, where it is hollow, simulated." in page
    only = replace(a_paper().rows[0], ratios=[replace(ROW, simulated=True)], slots_are=SIMULATED)
    told = paper_page(replace(a_paper(), rows=[only]))
    assert "a mark is what was simulated here." in told
    assert "The runs were simulated" in told
