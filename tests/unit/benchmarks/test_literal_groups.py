"""SPADE's own layout (its Fig. 6) does what the paper says, and groups hold the same rows as it does."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.engine.literal import BufferPerKey, CircularBuffer
from snapline.batch import Batch
from snapline.dataflow.operators.operator import Capture, Groups
from snapline.dataflow.sliding.plan import SlidingPlan
from snapline.dataflow.sliding.row_windows import LastRows, SlidingRowWindows


def test_the_example_of_the_paper():
    """15 rows in groups of 5: first A to M come, then N to R."""
    buffer = CircularBuffer(15, 5)
    assert len(buffer.files) == 4
    for letter in "ABCDEFGHIJKLM":
        buffer.insert(letter)
    assert ["".join(rows) for rows in buffer.checkpoint()] == ["ABCDE", "FGHIJ", "KLM"]
    for letter in "NOPQR":
        buffer.insert(letter)
    assert ["".join(rows) for rows in buffer.checkpoint()] == ["KLMNO", "PQR"]
    assert "".join(buffer.restored()) == "DEFGHIJKLMNOPQR", "A to C are read, and discarded"


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=12),
    st.integers(1, 12),
    st.integers(1, 5),
    st.booleans(),
)
def test_groups_hold_the_rows_that_the_literal_layout_holds(batches, window, group, keyed):
    keys = ("key",) if keyed else ()
    plan = SlidingPlan.of(keys, {"last": ("last", "price")}, ("time",))
    operator, literal = SlidingRowWindows(plan, LastRows(window)), BufferPerKey(window, group)
    operator.by_group(group)
    stored: dict[int, Batch] = {}
    at = 0
    for size in batches:
        n = np.arange(at, at + size)
        at += size
        operator.process("in", Batch.of(key=n % 3, time=n, price=n))
        literal.insert((n % 3).tolist() if keyed else [0] * size, n.tolist())
        changed = operator.capture(full=False).groups["rows"]
        stored = {k: rows for k, rows in stored.items() if k not in changed.dropped}
        stored |= changed.written
        literal.checkpoint()
    again = SlidingRowWindows(plan, LastRows(window))
    again.restore([Capture(True, {}, groups={"rows": Groups(dict(sorted(stored.items())))})])
    rows = again.capture(full=True).parts["rows"]
    expected = [row for buffer in literal.buffers.values() for row in buffer.restored()]
    assert sorted(rows["(of price)"].tolist()) == sorted(expected)
