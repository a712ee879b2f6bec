"""Which predicted figures are validated, which are extrapolated, and which are neither."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from a_profile import PROFILE
from snapline.rundir.spec import Spec
from snapline.scale.marks import Mark, mark_of, marks
from snapline.scale.profile import Checked, PredictionCheck

AS_USUAL = {"cores": 2, "interval_ms": 5_000, "rate": 2_000}
NEAR = [
    PredictionCheck(Checked.BYTES, "q12", "aligned", 4, 1.01, 1.0, **AS_USUAL),
    PredictionCheck(Checked.BYTES, "q12", "aligned", 10, 0.99, 1.0, **AS_USUAL),
    PredictionCheck(Checked.RESTART, "q12", "aligned", 10, 0.95, 1.0, **AS_USUAL),
]


def predicted(dilution=1, cores=2, **asked):
    spec = Spec(**{"flow": "q12", "protocol": "aligned", "slots": 10, **asked})
    return SimpleNamespace(spec=spec, dilution=dilution, cores=cores)


def marked(checks, *, figure="bytes", **asked):
    return marks(predicted(**asked), PROFILE.with_checks(tuple(checks)))[figure][0]


def test_within_the_range_that_was_checked_a_figure_is_validated():
    assert marked(NEAR) is Mark.VALIDATED
    assert marked(NEAR, slots=2) is Mark.VALIDATED
    assert marked(NEAR, duration_ms=9_000, seed=7) is Mark.VALIDATED


@pytest.mark.parametrize("asked", [{"slots": 11}, {"dilution": 2}, {"slots": 100, "dilution": 50}])
def test_beyond_it_a_figure_is_extrapolated(asked):
    assert marked(NEAR, **asked) is Mark.EXTRAPOLATED


@pytest.mark.parametrize(
    "asked",
    [
        *({"cores": None}, {"cores": 4}, {"interval_ms": 500}, {"rate": 9}, {"rate": "max"}),
        *({"size": "small"}, {"hot": 5}, {"settings": (("window", 3),)}, {"save": (("a", "no"),)}),
        {"options": (("kept_lines", 3),)},
        {"faults": "kill slot=1 at=2s"},
    ],
    ids=str,
)
def test_under_other_conditions_than_those_that_were_compared_a_figure_is_extrapolated(asked):
    assert marked(NEAR, **asked) is Mark.EXTRAPOLATED


def test_conditions_that_were_compared_but_never_together_are_extrapolated():
    apart = [replace(NEAR[0], interval_ms=500), replace(NEAR[0], rate=9)]
    assert marked(apart, slots=4, interval_ms=500) is Mark.VALIDATED
    assert marked(apart, slots=4, interval_ms=500, rate=9) is Mark.EXTRAPOLATED


def test_a_restart_is_compared_under_kills_of_one_slot():
    def restart(faults):
        return marked(NEAR, figure="restart_s", faults=faults)

    assert restart("kill slot=1 at=2s") is Mark.VALIDATED
    assert restart("kill slot=1,2 at=2s") is Mark.EXTRAPOLATED
    assert restart("pause slot=1 at=2s for=5s") is Mark.EXTRAPOLATED


def test_another_workload_is_extrapolated():
    assert marked(NEAR, flow="q3") is Mark.EXTRAPOLATED


def test_what_nobody_compared_is_not_validated():
    assert marked([]) is Mark.NOT_VALIDATED
    assert marked(NEAR, protocol="hmnr") is Mark.NOT_VALIDATED
    assert marked(NEAR[:2], figure="restart_s") is Mark.NOT_VALIDATED


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


def test_of_rates_only_those_over_that_of_none_are_compared():
    """So the records per second of a run have no mark of their own, however near the ratio was."""
    ratio = PredictionCheck(
        Checked.CAPACITY, "q12", "aligned", 10, 0.95, 1.0, cores=2, interval_ms=5_000, rate=None
    )
    profile = PROFILE.with_checks((*NEAR, ratio))
    fast = predicted(rate="max")
    assert "rate" not in marks(fast, profile)
    assert mark_of(Checked.CAPACITY, fast, profile)[0] is Mark.VALIDATED
