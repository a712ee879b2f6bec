"""The documentation shows what the comparison with Flink has measured, not what somebody once typed."""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks"
PAGE = (BENCHMARKS / "results" / "compare.md").read_text()
SHOWN = (ROOT / "docs" / "performance.md").read_text()


@pytest.fixture
def compare(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("compare")


def test_the_page_shows_the_tables_of_the_last_comparison(compare):
    shown = compare.shown_in(SHOWN)
    assert shown.startswith("| million rec/s |")
    assert shown == compare.tables_of(PAGE), "run benchmarks/compare.py --docs"


def test_a_comparison_rewrites_its_place_in_the_page_and_nothing_else(compare):
    page = "# Title\n\nHow.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n| c |\n|---|\n| 3 |\n"
    begin, end = compare.MARKS
    before = f"before\n{begin}\n| old |\n{end}\nafter\n"
    again = compare.rewritten(before, page)
    assert again == (
        f"before\n{begin}\n| a | b |\n|---|---|\n| 1 | 2 |\n\n| c |\n|---|\n| 3 |\n{end}\nafter\n"
    )
    assert compare.shown_in(again) == compare.tables_of(page)


def test_a_page_without_the_place_is_refused_with_the_marks_it_needs(compare):
    with pytest.raises(SystemExit, match="<!-- compare -->"):
        compare.rewritten("no place", PAGE)
