"""A rate that Structured Streaming sustains, and one that it does not: real runs, from outside."""

import pytest

from snapline.experiments.rates.system_probing import SystemProber
from snapline.rundir.spec import Spec
from snapline.systems.registry import system_of

SPEC = Spec("sst", slots=2, size="full", system="structured-streaming")


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "kept"), [(500, True), (600_000, False)])
def test_a_low_rate_is_sustained_and_a_very_high_one_is_not(tmp_path, rate, kept):
    trial = SystemProber(SPEC, lambda: system_of(SPEC.system), tmp_path, 15).attempt(rate)
    assert trial.sustained is kept, trial.because
    assert list(tmp_path.iterdir()) == []
