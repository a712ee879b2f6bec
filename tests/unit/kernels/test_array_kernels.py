"""Grouping, chains and windows: numpy, plain loop and compiled loop give the same, and what is right."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from kernel_forms import FORMS, installed
from snapline.kernels import chains, grouping, windows

LOWEST, HIGHEST = -(2**63), 2**63 - 1
ROWS = st.lists(st.integers(0, 9), max_size=40)


def ints(values):
    return np.array(values, np.int64)


def in_every_form(do):
    """What `do` returns with each form of the kernels: always the same."""
    found = []
    for form in FORMS:
        with installed(form):
            found.append(do())
    first = found[0]
    for other in found[1:]:
        for left, right in zip(first, other, strict=True):
            assert np.asarray(left).dtype == np.asarray(right).dtype
            assert np.array_equal(left, right)
    return first


@given(ROWS)
def test_occurrences_number_equal_rows_in_their_order(rows):
    def do():
        ranks = np.empty(len(rows), np.int64)
        grouping.occurrences(ints(rows), ranks)
        return [ranks]

    (ranks,) = in_every_form(do)
    assert ranks.tolist() == [rows[:i].count(row) for i, row in enumerate(rows)]


@given(ROWS, st.lists(st.integers(0, 5) | st.just(HIGHEST), min_size=10, max_size=10))
def test_a_tally_goes_on_from_what_is_there_also_beyond_the_highest_number(rows, before):
    def do():
        live, dirty, counts = ints(before), np.zeros(10, np.bool_), np.empty(len(rows), np.int64)
        grouping.tally(ints(rows), counts, live, dirty)
        return live, dirty, counts

    with np.errstate(over="ignore"):
        live, dirty, counts = in_every_form(do)
    wrapped = [(before[r] + rows[: i + 1].count(r)) for i, r in enumerate(rows)]
    assert counts.tolist() == [n if n <= HIGHEST else n - 2**64 for n in wrapped]
    assert set(np.flatnonzero(dirty)) == set(rows)
    assert [live[r] for r in set(rows)] == [
        counts[len(rows) - 1 - rows[::-1].index(r)] for r in set(rows)
    ]


@given(ROWS)
def test_groups_keep_the_order_of_arrival(rows):
    def do():
        bounds, order = np.zeros(11, np.int64), np.empty(len(rows), np.int64)
        grouping.group(ints(rows), bounds, order)
        return bounds, order

    bounds, order = in_every_form(do)
    found = [run.tolist() for run in np.split(order, bounds[1:-1])]
    assert found == [[i for i, x in enumerate(rows) if x == row] for row in range(10)]


@given(
    st.lists(ROWS, max_size=6),
    st.lists(st.integers(-1, 9), max_size=40),
    st.integers(1, 5) | st.just(HIGHEST),
)
def test_chains_are_walked_in_steps_from_the_last_link_on(batches, asked, most):
    def do():
        heads, before, first = np.zeros(10, np.int64), np.zeros(400, np.int64), 0
        for rows in batches:
            chains.push(ints(rows), first, heads, before)
            first += len(rows)
        return heads, before, *chains.walk(ints(asked), heads, before, most)

    _, _, positions, links = in_every_form(do)
    everything = [row for rows in batches for row in rows]
    chain = [[i for i, x in enumerate(everything) if x == row][::-1][:most] for row in asked]
    steps = range(max(map(len, chain), default=0))
    expected = [(p, links[n]) for n in steps for p, links in enumerate(chain) if n < len(links)]
    assert list(zip(positions.tolist(), links.tolist(), strict=True)) == expected


TIMES = st.integers(-50, 50) | st.integers(LOWEST, HIGHEST)


@given(st.lists(TIMES, min_size=1, max_size=30), st.integers(1, 40) | st.integers(1, HIGHEST))
@example([LOWEST, HIGHEST, LOWEST, 0], 1000)
@example([HIGHEST, LOWEST], 1000)
def test_windows_begin_at_multiples_of_their_size(times, size):
    def do():
        starts = np.empty(len(times), np.int64)
        return (*windows.assign(ints(times), size, starts), starts)

    with np.errstate(over="ignore"):
        lowest, highest, starts = in_every_form(do)
    exact = [time // size * size for time in times]
    assert starts.tolist() == [n if n >= LOWEST else n + 2**64 for n in exact]
    assert (lowest, highest) == (starts.min(), starts.max())
