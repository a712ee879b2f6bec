"""The benchmark programs are small, say how they are called, are listed, and divide the right figures."""

import ast
from pathlib import Path

import pytest

from benchmarks.endurance import flat_figures as figures
from benchmarks.endurance.slot_probe import Line
from benchmarks.engine import prices
from snapline.metrics.second import Second

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
FILES = sorted(BENCHMARKS.glob("*/*.py"))
PROGRAMS = [
    path for path in FILES if "\ndef main(" in path.read_text() and "parser" in path.read_text()
]


def name(path):
    return f"{path.parent.name}.{path.stem}"


def test_there_are_programs():
    assert {"systems", "prices", "flat", "growth", "ten_slots"} <= {path.stem for path in PROGRAMS}


@pytest.mark.parametrize("path", PROGRAMS, ids=name)
def test_a_program_shows_how_it_is_called_and_is_listed(path):
    doc = ast.get_docstring(ast.parse(path.read_text()))
    command = f"python -m benchmarks.{name(path)}"
    assert command in doc
    assert f"{command}`" in (BENCHMARKS / "README.md").read_text()


@pytest.mark.parametrize("path", FILES, ids=name)
def test_a_file_fits_in_a_head(path):
    assert len(path.read_text().splitlines()) <= 250


def test_a_price_is_the_ratio_to_the_run_without_a_protocol_in_the_same_turn():
    found = {
        "none": [prices.Cost(rate, 100, 0, 0) for rate in (1_000, 2_000, 4_000)],
        "aligned": [prices.Cost(rate, 110, 8, 0) for rate in (900, 1_000, 4_000)],
    }
    head, _, base, aligned = prices.price_table({4_000: found})
    assert head == "| q12 | batches of 4,000 |"
    assert base == "| `none`, rec/s | 2,000 (1,000 to 4,000) |"
    assert aligned == "| `aligned` | **0.90** (0.50 to 1.00) |"
    assert prices.work_table({4_000: found})[-1] == "| `aligned` | 110 | 8.00 | 0 |"


def test_figures_of_a_long_run_are_cut_into_whole_blocks_and_given_slopes():
    made = [
        Second(at_s, read=4_000, written=10, p50_ms=1.0, p99_ms=2.0 + at_s) for at_s in range(45)
    ]
    lines = [
        Line(at_s + 0.5, 0.002 * at_s, 5 * at_s, 5_000_000, 2_000_000, delta_us=[20.0])
        for at_s in range(45)
    ]
    watch = figures.Watch({"process-0": lines}, [(at_s + 0.5, 8_000_000) for at_s in range(45)])
    blocks = figures.blocks_of(watch, made, 10)
    assert [block.at_s for block in blocks] == [5, 15, 25, 35]
    table = {row.split(" | ")[0]: row for row in figures.slope_table(blocks)}
    assert "| 2,000.00 |" in table["| CPU us per 4,000 records"]
    assert "| 400.00 |" in table["| CPU us per batch taken"]
    assert "| 3.00 |" in table["| RSS beyond the state, MB"]
    assert table["| RSS beyond the state, MB"].endswith("| yes |")
    assert table["| p99, ms (mean of seconds)"].endswith("| **no** |")
    assert "| alignment, ms" not in table
