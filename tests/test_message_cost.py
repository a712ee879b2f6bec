"""The benchmark of one message stands in for a world: it has to know all that a slot asks of one."""

import pytest

from benchmarks.engine.message_cost import WAYS, build_job, cost_us
from snapline.protocols import PROTOCOLS


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("way", WAYS)
def test_a_message_of_every_protocol_has_its_price(protocol, way):
    assert cost_us(build_job(PROTOCOLS[protocol], tasks=3), way, count=5, rounds=1) > 0
