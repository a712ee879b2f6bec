"""The job with three shuffles under kills: with every protocol, and at every level that it offers."""

import pytest
from sim_runs import kept

from snapline.protocols import PROTOCOLS
from snapline.sim.case import Case

KILLS = "kill slot=1 at=900ms; kill slot=0,2 at=1700ms"
LEVELS = [(name, level.value) for name, p in PROTOCOLS.items() for level in p.guarantees]


@pytest.mark.parametrize(("protocol", "level"), LEVELS)
def test_three_shuffles_survive_kills(protocol, level):
    outcome = kept(Case(protocol, "abs", 4, records=24, guarantee=level, faults=KILLS))
    assert outcome.stats["crashes"] >= 2
    assert outcome.crashed_after_commit or PROTOCOLS[protocol].publishes_at_once
