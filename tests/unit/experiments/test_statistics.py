"""Comparisons in pairs: exact tests, intervals that hold what they promise, and answers in words."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapline.experiments.statistics import (
    ALPHA,
    Difference,
    answer,
    holm,
    paired,
    signs_p,
)

RATIOS = st.lists(st.floats(0.2, 5.0), min_size=1, max_size=9)

#: seconds of six runs of one setting, and of six of the same, taken in turns on a busy machine
SAME = [3.10, 2.95, 3.42, 3.05, 2.99, 3.20], [3.02, 3.11, 3.30, 3.15, 2.90, 3.22]


def brute_p(logs: np.ndarray) -> float:
    """The share of all flips of signs whose mean is at least as far out as the measured one, doubled."""
    means = [np.mean(logs * np.array(signs)) for signs in product((1, -1), repeat=len(logs))]
    observed, slack = np.mean(logs), 1e-11
    above = np.mean([mean >= observed - slack for mean in means])
    below = np.mean([mean <= observed + slack for mean in means])
    return float(min(1.0, 2 * min(above, below)))


@given(RATIOS)
def test_p_is_the_share_of_flipped_signs(ratios: list[float]) -> None:
    found = paired([1.0] * len(ratios), ratios)
    assert found.p == pytest.approx(brute_p(np.log(ratios)), abs=1e-9)


@given(RATIOS, st.floats(0.1, 10.0))
def test_a_ratio_scales_with_its_column(ratios: list[float], factor: float) -> None:
    ones = [1.0] * len(ratios)
    plain, scaled = paired(ones, ratios), paired(ones, [factor * each for each in ratios])
    assert scaled.estimate == pytest.approx(factor * plain.estimate)
    assert scaled.low == pytest.approx(factor * plain.low)
    assert scaled.high == pytest.approx(factor * plain.high)


@given(RATIOS)
def test_exchanged_columns_give_the_inverse(ratios: list[float]) -> None:
    ones = [1.0] * len(ratios)
    there, back = paired(ones, ratios), paired(ratios, ones)
    assert back.estimate == pytest.approx(1 / there.estimate)
    assert [back.low, back.high] == pytest.approx([1 / there.high, 1 / there.low])
    assert back.p == pytest.approx(there.p)


@given(st.lists(st.floats(0.2, 5.0), min_size=6, max_size=9))
def test_test_and_interval_agree(ratios: list[float]) -> None:
    found = paired([1.0] * len(ratios), ratios)
    if found.p <= 1 - found.level - 1e-9:
        assert found.excludes_one
    if found.excludes_one:
        assert found.p <= 1 - found.level + 1e-9


@pytest.mark.parametrize("pairs", [6, 9, 20])
def test_intervals_hold_the_true_ratio_as_often_as_they_say(pairs: int) -> None:
    dice = np.random.default_rng(7)
    held, tries = 0, 400
    for _ in range(tries):
        noise = dice.laplace(scale=0.1, size=pairs)  # symmetric, and far from normal
        found = paired([1.0] * pairs, list(1.3 * np.exp(noise)))
        held += found.low <= 1.3 <= found.high
        assert found.level >= 1 - ALPHA
    assert 0.92 <= held / tries <= 0.99


def test_five_pairs_are_not_enough_to_be_sure() -> None:
    five, six = paired([1.0] * 5, [2.0] * 5), paired([1.0] * 6, [2.0] * 6)
    assert (five.p, five.level, five.is_sure) == (0.0625, 0.9375, False)
    assert (six.p, six.is_sure) == (0.03125, True)


def test_one_pair_has_a_ratio_and_no_certainty() -> None:
    found = paired([2.0], [3.0])
    assert found.estimate == pytest.approx(1.5)
    assert (found.level, found.p) == (0.0, 1.0)


def test_values_without_a_ratio_are_refused() -> None:
    for first, second in (([], []), ([1.0], [1.0, 2.0])):
        with pytest.raises(ValueError, match="are no pairs"):
            paired(first, second)
    for first, second in (([0.0], [1.0]), ([1.0], [float("nan")])):
        with pytest.raises(ValueError, match="above 0"):
            paired(first, second)


def test_answers() -> None:
    first, second = SAME
    slower = [1.2 * each for each in second]
    assert answer(first, second)[1].difference is Difference.NOT_DISTINGUISHABLE
    assert answer(first, second, margin=1.1)[1].difference is Difference.ALIKE
    assert answer(first, second, margin=1.01)[1].difference is Difference.CANNOT_TELL
    assert answer(first, slower)[1].difference is Difference.MORE
    assert answer(slower, first)[1].difference is Difference.LESS
    assert answer(first, slower)[1].is_sure
    assert not answer(first[:5], slower[:5])[1].is_sure


def test_few_pairs_are_never_called_alike() -> None:
    same = [1.0, 1.0, 1.0]
    assert answer(same, same, margin=1.05)[1].difference is Difference.CANNOT_TELL


def test_holm_multiplies_the_smallest_p_by_their_number_and_keeps_their_order() -> None:
    """By hand: 0.01 * 4, 0.013 * 3 is less than that, 0.03 * 2, and 0.04 is less than 0.06."""
    assert holm([0.03, 0.01, 0.04, 0.013]) == pytest.approx([0.06, 0.04, 0.06, 0.04])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


def test_holm_claims_something_wrongly_in_one_of_twenty_families_at_most() -> None:
    dice = np.random.default_rng(3)
    wrong, families = 0, 400
    for _ in range(families):
        ps = []
        for _ in range(3):
            found = paired([1.0] * 8, list(np.exp(dice.laplace(scale=0.1, size=8))))
            ps.append(found.p / 2 if found.estimate > 1 else 1 - found.p / 2)
        wrong += min(holm(ps)) <= ALPHA
    assert wrong / families <= 0.08


def test_the_sign_test_is_a_coin() -> None:
    assert signs_p(6, 6) == 1 / 64
    assert signs_p(5, 6) == 7 / 64
    assert signs_p(0, 6) == 1.0
