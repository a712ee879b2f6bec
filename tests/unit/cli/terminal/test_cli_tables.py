"""The table of a sweep on terminals of different widths."""

import pytest
from rich.console import Console

from snapline.cli.terminal.tables import WIDE, Cell, sweep_table


def shown(rows, width):
    console = Console(width=width)
    with console.capture() as captured:
        console.print(sweep_table(rows, width))
    return captured.get()


def cell(protocol, workload):
    row = Cell(protocol, workload, runs=200, violations=123)
    row.stats.update(crashes=1_234, rollbacks=12_345, replayed=123_456, forced=99_999)
    return row


def test_a_wide_terminal_shows_protocol_and_workload():
    table = shown([cell("aligned-cyclic", "reachability")], WIDE)
    assert "…" not in table
    assert "aligned-cyclic" in table
    assert "reachability" in table


@pytest.mark.parametrize(
    ("rows", "title"),
    [
        ([cell("aligned-cyclic", "counting"), cell("bcs", "counting")], "workload counting"),
        ([cell("bcs", "counting"), cell("bcs", "reachability")], "protocol bcs"),
    ],
)
def test_a_narrow_one_shows_in_the_title_what_is_the_same_in_every_row(rows, title):
    table = shown(rows, 80)
    assert "…" not in table
    assert table.startswith(title)
    assert table.count(title.split()[1]) == 1
    assert "violations" in table


@pytest.mark.parametrize("width", [40, 50, 60, 70])
def test_a_very_narrow_one_leaves_counts_out_and_cuts_no_heading(width):
    row = cell("aligned", "counting")
    row.stats.update(forced=-99_999)  # nothing was forced
    table = shown([row], width)
    assert "…" not in table
    assert "runs" in table
    assert "violations" in table
    assert ("forced" in table) == (width >= 60)  # it is the first to go
    assert "crashes" in table
