"""Runs that once broke a promise, found by sweeps over fresh seeds and made small."""

import pytest

from snapline.sim.case import Case
from snapline.sim.run import simulate

FOUND = {
    # A marker that overtook output counted messages of the epoch before, which a slow link still held.
    "messages of a former epoch on a slow link": (
        Case("unaligned", "mst", 618504635, records=60, faults="kill slot=2 at=1683ms"),
        Case(
            "unaligned",
            "nhop",
            500014430,
            records=60,
            faults="kill slot=0 at=1790ms; kill slot=1 at=1682ms",
        ),
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_once_stays_mended(name):
    for case in FOUND[name]:
        assert simulate(case).violation is None
