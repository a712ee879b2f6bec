"""Deviation of simulated runs: none under an exact protocol, and what was lost under others."""

from dataclasses import replace

import pytest

from a_profile import PROFILE
from snapline.protocols import PROTOCOLS
from snapline.rundir.spec import Spec
from snapline.scale.predict import predict

RUN = Spec("q12", slots=2, rate=300, duration_ms=3_000, interval_ms=500, size="small")
KILLED = replace(RUN, faults="kill slot=1 at=1500ms")
EXACT = [name for name, p in PROTOCOLS.items() if p.saves and not p.publishes_at_once]


def deviation(spec, **given):
    found = predict(replace(spec, **given), PROFILE, cores=2)
    assert found.problem is None
    return found.figures.deviation


@pytest.mark.parametrize("protocol", EXACT)
def test_an_exact_protocol_has_no_deviation(protocol):
    found = deviation(KILLED, protocol=protocol)
    assert found.is_zero, found
    assert found.from_ms == 1_500
    assert found.rows > 0


def test_without_a_fault_nothing_can_be_off():
    assert deviation(RUN, protocol="aligned") is None
    found = deviation(RUN, protocol="partial")
    assert found.is_zero
    assert (found.from_ms, found.missing, found.right_again_s) == (0, 0, 0)


def test_what_was_not_saved_is_further_off():
    saved = deviation(KILLED, protocol="partial", flow="counting", save=(("count", "100ms"),))
    unsaved = deviation(KILLED, protocol="partial", flow="counting", save=(("count", "no"),))
    assert 0 < saved.columns["count"].rmse < unsaved.columns["count"].rmse / 2


def test_a_diluted_run_has_no_rows_of_its_own():
    found = predict(replace(KILLED, protocol="none"), PROFILE, dilution=10)
    assert found.figures.deviation is None
