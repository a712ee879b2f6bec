"""Non-negative least squares: worked out by hand, and against the conditions that a solution has."""

import numpy as np
import pytest

from snapline.scale.least_squares import nonnegative


def test_exact_costs_are_found_again():
    work = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 1.0], [4.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
    costs = np.array([2.0, 0.5, 3.0])
    assert nonnegative(work, work @ costs) == pytest.approx(costs, rel=1e-4)


def test_a_cost_that_would_be_negative_is_zero_and_the_others_are_fitted_anew():
    """Of y = 2, 1 for x = (1, 0), (1, 1) the plain fit has the second cost at -1."""
    work, spent = np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([2.0, 1.0])
    assert nonnegative(work, spent) == pytest.approx([1.5, 0.0], rel=1e-4)


def test_work_that_always_comes_together_shares_its_cost():
    work = np.array([[1.0, 1.0], [2.0, 2.0], [5.0, 5.0]])
    found = nonnegative(work, np.array([4.0, 8.0, 20.0]))
    assert found == pytest.approx([2.0, 2.0], rel=1e-3)


def test_work_that_never_occurred_costs_nothing():
    work = np.array([[1.0, 0.0], [2.0, 0.0]])
    assert nonnegative(work, np.array([3.0, 6.0])) == pytest.approx([3.0, 0.0], rel=1e-4)


@pytest.mark.parametrize("seed", range(20))
def test_no_direction_is_better(seed):
    """The conditions of Karush, Kuhn and Tucker: a free cost has no slope, one at zero only does harm."""
    rng = np.random.default_rng(seed)
    work, spent = rng.random((12, 6)), rng.random(12) * 4 - 1
    found = nonnegative(work, spent)
    slope = work.T @ (spent - work @ found)
    assert (found >= 0).all()
    assert np.abs(slope[found > 1e-6]).max(initial=0.0) < 1e-3
    assert (slope[found <= 1e-6] < 1e-3).all()
