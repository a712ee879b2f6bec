"""The warm-up of a run is an argument as any other: read by a rule, and stored with the run."""

from dataclasses import asdict

import pytest

from snapline.errors import UsageError
from snapline.experiments.sweep_file import sweep_of
from snapline.rundir.directory import VERSION, RunDirectory
from snapline.rundir.spec import Spec, spec_from, spec_of


def warm_up_ms(**given):
    return spec_from({"flow": "q12", **given}, str).warm_up_ms


def test_a_warm_up_is_as_long_as_it_is_said_to_be_and_nothing_unless_it_is():
    assert warm_up_ms() == 0
    assert warm_up_ms(warm_up="5s") == 5_000
    assert warm_up_ms(warm_up="5s", duration="5s") == 5_000


@pytest.mark.parametrize(
    "given",
    [{}, {"duration": "8s"}, {"duration": "8s", "flow": "mine"}, {"duration": "8s", "rate": 5}],
)
def test_a_warm_up_that_is_longer_than_input_comes_is_refused(given):
    with pytest.raises(
        UsageError, match=r"^warm_up is at most duration, here (20|8)s, and not 21s$"
    ):
        warm_up_ms(warm_up="21s", **given)


@pytest.mark.parametrize(
    "given", [{"duration": "forever"}, {"rate": "max"}, {"input": "."}, {"flow": "mine"}]
)
def test_where_nobody_knows_how_long_input_comes_a_warm_up_may_be_of_any_length(given):
    assert warm_up_ms(warm_up="2h", **given) == 7_200_000


def test_a_run_directory_keeps_it_and_one_of_an_earlier_version_has_none(tmp_path):
    directory = RunDirectory.create(tmp_path, "x", "aligned", asdict(Spec("q12", warm_up_ms=3_000)))
    assert spec_of(directory).warm_up_ms == 3_000
    earlier = {name: value for name, value in directory.spec().items() if name != "warm_up_ms"}
    directory.write("run.json", {**earlier, "version": VERSION})
    assert spec_of(directory).warm_up_ms == 0


def test_the_runs_of_a_sweep_may_have_one():
    sweep = sweep_of(
        {"turns": 1, "base": {"flow": "q12", "warm_up": "2s"}, "matrix": {"duration": ["5s", "9s"]}}
    )
    assert {column.spec.warm_up_ms for column in sweep.columns} == {2_000}
