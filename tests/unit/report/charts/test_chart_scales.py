"""Scales of charts: round ticks, values in their places, nothing beyond the ends."""

import pytest

from snapline.report.charts.scales import Linear, Logarithmic, linear, logarithmic, short


def test_a_linear_axis_ends_at_a_round_number_above_all_values():
    axis = linear([3.0, 6_900.0])
    assert axis == Linear(0, 8000)
    assert [label for _, label in axis.ticks(5)] == ["0", "2,000", "4,000", "6,000", "8,000"]
    assert [axis.share(value) for value in (-1, 0, 4_000, 9_000)] == [0, 0, 0.5, 1]


def test_a_logarithmic_axis_spans_powers_of_ten():
    axis = logarithmic([0.4, 3_900.0])
    assert axis == Logarithmic(0.1, 10_000)
    assert [label for _, label in axis.ticks(5)] == [
        "0.1 ms",
        "1.0 ms",
        "10 ms",
        "100 ms",
        "1000 ms",
        "10.0 s",
    ]
    assert [axis.share(v) for v in (0, 0.1, 10_000, 1e9)] == [0, 0, 1, 1]
    assert axis.share(1) == pytest.approx(0.2)


def test_a_narrow_axis_of_ratios_has_ticks_on_both_sides_of_one():
    axis = Logarithmic(0.73, 1.37, times=False)
    assert [label for _, label in axis.ticks(10)] == ["0.8", "0.9", "1", "1.1", "1.25"]


def test_an_axis_of_ratios_with_one_power_of_ten_in_it_has_room_for_its_labels():
    axis = Logarithmic(0.08, 1.38, times=False)
    assert [label for _, label in axis.ticks(10)] == ["0.1", "0.2", "0.5", "1"]


def test_axes_without_values_still_have_ticks():
    assert len(linear([]).ticks(5)) > 1
    assert len(logarithmic([]).ticks(5)) > 1
    assert len(logarithmic([5.0, 5.0]).ticks(5)) > 1


@pytest.mark.parametrize(
    ("value", "told"),
    [
        *((0, "0"), (0.25, "0.25"), (950, "950"), (999.7, "1,000"), (2_727.3, "2,727")),
        *((9_999, "9,999"), (12_000, "12k"), (1.5e6, "1.5M")),
    ],
)
def test_numbers_take_few_characters(value, told):
    assert short(value) == told
