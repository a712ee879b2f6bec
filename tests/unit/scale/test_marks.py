"""Which predicted figures are validated, which are extrapolated, and which are neither."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from a_profile import PROFILE
from snapline.rundir.spec import Spec
from snapline.scale.marks import Mark, marks
from snapline.scale.profile import Checked, PredictionCheck

NEAR = [
    PredictionCheck(Checked.BYTES, "q12", "aligned", 4, 1.01, 1.0),
    PredictionCheck(Checked.BYTES, "q12", "aligned", 10, 0.99, 1.0),
    PredictionCheck(Checked.CAPACITY, "q12", "aligned", 10, 0.95, 1.0),
]


def marked(checks, *, figure="bytes", dilution=1, **asked):
    spec = Spec("q12", **{"protocol": "aligned", "slots": 10, **asked})
    prediction = SimpleNamespace(spec=spec, dilution=dilution)
    return marks(prediction, PROFILE.with_checks(tuple(checks)))[figure][0]


def test_within_the_range_that_was_checked_a_figure_is_validated():
    assert marked(NEAR) is Mark.VALIDATED
    assert marked(NEAR, slots=2) is Mark.VALIDATED


@pytest.mark.parametrize("asked", [{"slots": 11}, {"dilution": 2}, {"slots": 100, "dilution": 50}])
def test_beyond_it_a_figure_is_extrapolated(asked):
    assert marked(NEAR, **asked) is Mark.EXTRAPOLATED


def test_another_workload_is_extrapolated():
    spec = Spec("q3", protocol="aligned", slots=4)
    prediction = SimpleNamespace(spec=spec, dilution=1)
    found = marks(prediction, PROFILE.with_checks(tuple(NEAR)))
    assert found["bytes"][0] is Mark.EXTRAPOLATED


def test_what_nobody_compared_is_not_validated():
    assert marked([]) is Mark.NOT_VALIDATED
    assert marked(NEAR, protocol="hmnr") is Mark.NOT_VALIDATED
    assert marked(NEAR, figure="restart_s") is Mark.NOT_VALIDATED


def test_one_prediction_beyond_the_bar_makes_it_not_validated():
    wrong = replace(NEAR[0], predicted=1.05)
    assert marked([wrong, NEAR[1]]) is Mark.NOT_VALIDATED


def test_messages_of_another_size_are_extrapolated_and_their_errors_do_not_count_where_the_size_is_known():
    single = [replace(check, batch=1) for check in NEAR]
    assert marked(NEAR, options=(("batch", 1),)) is Mark.EXTRAPOLATED
    assert marked(single) is Mark.EXTRAPOLATED
    assert marked(single, options=(("batch", 1),)) is Mark.VALIDATED
    wrong = [replace(check, predicted=1.4) for check in NEAR]
    assert marked([*single, *wrong], options=(("batch", 1),)) is Mark.VALIDATED
    assert marked([*single, *wrong]) is Mark.NOT_VALIDATED
    assert marked([*single, *wrong], options=(("batch", 7),)) is Mark.NOT_VALIDATED


def test_a_rate_is_compared_only_at_full_speed():
    assert marked(NEAR, figure="rate") is Mark.NOT_VALIDATED
    assert marked(NEAR, figure="rate", rate="max") is Mark.VALIDATED
