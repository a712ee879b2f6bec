"""Which slots faults strike: those of a pool are known when the run is prepared."""

import pytest

from snapline.chaos.faults import describe, parse
from snapline.chaos.targets import aimed, check
from snapline.errors import FaultSyntaxError

POOLS = {"": (0, 1), "model": (2, 3), "late": (4,)}


def test_a_fault_that_names_a_pool_strikes_its_slots():
    plan = parse("kill pool=model at=1s for=3s; kill slot=0 at=2s; kill pool=late at=3s")
    assert describe(aimed(plan, POOLS)) == (
        "kill slot=2,3 at=1s for=3s; kill slot=0 at=2s; kill slot=4 at=3s"
    )


def test_a_pool_that_the_dataflow_does_not_have_is_refused_with_those_that_it_has():
    with pytest.raises(FaultSyntaxError, match="no pool 'modle': the dataflow has model, late"):
        aimed(parse("kill pool=modle at=1s"), POOLS)


def test_without_a_dataflow_there_are_no_pools():
    with pytest.raises(FaultSyntaxError, match="no pool 'model': the dataflow has none"):
        check(parse("kill pool=model at=1s"), 3)
