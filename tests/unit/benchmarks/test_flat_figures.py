"""What "flat" rests on: slopes with honest errors, and the size of a state without what is not filled."""

import numpy as np
import pytest

from benchmarks.endurance import slot_probe
from snapline.batch import Batch
from snapline.dataflow.operators.join import Join
from snapline.experiments.rates import slopes

TIMES = np.arange(54) / 6  # nine minutes of blocks


def noise(dice, alike):
    """What is left over: each point keeps so much of the one before."""
    steps = dice.normal(size=len(TIMES) + 20)
    for i in range(1, len(steps)):
        steps[i] += alike * steps[i - 1]
    return steps[20:]


def test_a_line_is_found_with_its_slope():
    line = slopes.slope_of(TIMES, 100 + 3 * TIMES + noise(np.random.default_rng(1), 0))
    assert abs(line.value - 3) < line.error < 0.2
    assert not line.flat
    assert line.relative(line.value) == pytest.approx(100 * line.value / line.mean)


@pytest.mark.parametrize(("alike", "share"), [(0.0, 0.92), (0.6, 0.88)])
def test_what_has_no_slope_is_called_flat_even_if_neighbours_are_alike(alike, share):
    dice = np.random.default_rng(2)
    flat = [slopes.slope_of(TIMES, 5 + noise(dice, alike)).flat for _ in range(500)]
    assert share < np.mean(flat) <= 0.98


def test_a_sawtooth_and_what_never_changes_are_flat():
    assert slopes.slope_of(TIMES, np.arange(len(TIMES)) % 9).flat
    assert slopes.slope_of(TIMES, np.full(len(TIMES), 0.1)).flat
    assert slopes.slope_of(TIMES, np.full(len(TIMES), 12_345.678)).flat


def test_three_points_have_no_slope():
    with pytest.raises(ValueError, match="measure for longer"):
        slopes.slope_of([1, 2, 3], [1, 2, 3])


def test_the_size_of_a_state_grows_with_its_rows_and_not_with_its_spare_room():
    join = Join(("key",), ("key",))
    empty = slot_probe.size_of(join)
    rows = np.arange(100_000)
    join.process("left", Batch({"key": rows % 7, "value": rows}))
    filled = slot_probe.size_of(join) - empty
    own = 3 * rows.nbytes  # two columns, and the chain through them
    assert own <= filled < own + 10_000
