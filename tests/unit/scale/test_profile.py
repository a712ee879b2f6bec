"""Profiles as files: written and read back, and everything else refused with a sentence."""

import json

import pytest

from a_profile import COSTS, PROFILE
from snapline.errors import UsageError
from snapline.scale.profile import (
    Checked,
    Fit,
    PredictionCheck,
    Residual,
    read_profile,
    write_profile,
)

CHECKS = (
    PredictionCheck(Checked.BYTES, "q12", "aligned", 4, 101.0, 100.0, 2, 5_000, None),
    PredictionCheck(Checked.RESTART, "q3", "hmnr", 10, 2.0, 1.0, 2, 5_000, 2_000),
)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "profile.json"


def test_a_profile_that_was_written_is_read_back(file):
    residuals = (Residual("q12: none", 100.0, 110.0),)
    whole = PROFILE.with_checks(CHECKS)
    whole = type(whole)(
        whole.costs_us,
        whole.generate_us,
        whole.environment,
        Fit(("q12",), (1, 2), residuals),
        CHECKS,
    )
    file.write_text(write_profile(whole))
    assert read_profile(file) == whole
    assert read_profile(file).fit.worst == pytest.approx(0.1)


def changed(file, change):
    written = json.loads(write_profile(PROFILE.with_checks(CHECKS)))
    change(written)
    file.write_text(json.dumps(written))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda w: w.update(snapline_profile=99), "version 99"),
        (lambda w: w.update(snapline_profile=2), "version 2, and this Snapline reads version 3"),
        (lambda w: w.pop("snapline_profile"), "is no profile"),
        (lambda w: w["costs_us"].pop("frame_us"), "frame_us"),
        (lambda w: w["costs_us"].update(tea_us=3), "tea_us"),
        (lambda w: w["costs_us"].update(frame_us=-1), "frame_us"),
        (lambda w: w["costs_us"].update(frame_us="much"), "frame_us"),
        (lambda w: w.pop("fit"), "fit"),
        (lambda w: w["checks"][0].update(what="taste"), "taste"),
        (lambda w: w.update(costs_us=[]), "no whole profile"),
    ],
)
def test_what_is_no_whole_profile_is_refused(file, change, said):
    changed(file, change)
    with pytest.raises(UsageError, match=said):
        read_profile(file)


def test_a_file_that_is_not_there_or_not_json_is_refused(file):
    with pytest.raises(UsageError, match="snapline calibrate --to"):
        read_profile(file)
    for text in ("{", "[" * 100_000):
        file.write_text(text)
        with pytest.raises(UsageError, match="is no profile: it is not JSON"):
            read_profile(file)


def test_costs_are_those_of_the_profile_with_the_generator_of_the_workload():
    costs = PROFILE.costs("q3", cores=2)
    assert costs.read_us == pytest.approx(COSTS["read_us"] + 0.04)
    assert (costs.cores, costs.launch_us, costs.frame_us) == (2, 300_000, 15.0)
    assert (costs.batch_us, costs.record_us) == (0, 0)  # what they stand for is paid for by itself


def test_a_check_holds_within_its_bar():
    near, far = CHECKS
    assert (near.holds, round(near.error, 3)) == (True, 0.01)
    assert (far.holds, far.error) == (False, 1.0)
