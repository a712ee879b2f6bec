"""The documentation shows what the comparison with Flink has measured, not what somebody once typed."""

from pathlib import Path

import pytest

from benchmarks.flink import compare

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "benchmarks" / "results" / "compare.md").read_text()
SHOWN = (ROOT / "docs" / "performance.md").read_text()


def test_the_page_shows_the_tables_of_the_last_comparison():
    shown = compare.shown_in(SHOWN)
    assert shown.startswith("| million rec/s |")
    assert shown == compare.tables_of(PAGE), "run python -m benchmarks.flink.compare --docs"


def test_a_comparison_rewrites_its_place_in_the_page_and_nothing_else():
    page = "# Title\n\nHow.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n| c |\n|---|\n| 3 |\n"
    begin, end = compare.MARKS
    before = f"before\n{begin}\n| old |\n{end}\nafter\n"
    again = compare.rewritten(before, page)
    assert again == (
        f"before\n{begin}\n| a | b |\n|---|---|\n| 1 | 2 |\n\n| c |\n|---|\n| 3 |\n{end}\nafter\n"
    )
    assert compare.shown_in(again) == compare.tables_of(page)


def test_a_page_without_the_place_is_refused_with_the_marks_it_needs():
    with pytest.raises(SystemExit, match="<!-- compare -->"):
        compare.rewritten("no place", PAGE)
