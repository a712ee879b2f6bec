"""The documentation shows what the comparison has measured, not what somebody once typed."""

from pathlib import Path

import pytest

from benchmarks.compare import tables

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "benchmarks" / "results" / "compare.md").read_text()
SHOWN = (ROOT / "docs" / "performance.md").read_text()


def test_the_page_shows_the_tables_of_the_last_comparison():
    shown = tables.shown_in(SHOWN)
    assert shown.startswith("| million rec/s |")
    assert shown == tables.tables_of(PAGE), "run python -m benchmarks.compare.systems --docs"


def test_a_comparison_rewrites_its_place_in_the_page_and_nothing_else():
    page = "# Title\n\nHow.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n| c |\n|---|\n| 3 |\n"
    begin, end = tables.MARKS
    before = f"before\n{begin}\n| old |\n{end}\nafter\n"
    again = tables.rewritten(before, page)
    assert again == (
        f"before\n{begin}\n| a | b |\n|---|---|\n| 1 | 2 |\n\n| c |\n|---|\n| 3 |\n{end}\nafter\n"
    )
    assert tables.shown_in(again) == tables.tables_of(page)


def test_a_page_without_the_place_is_refused_with_the_marks_it_needs():
    with pytest.raises(SystemExit, match="<!-- compare -->"):
        tables.rewritten("no place", PAGE)
