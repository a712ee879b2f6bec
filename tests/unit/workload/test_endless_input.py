"""Input without an end: it goes on beyond its period as it began, and never says that it is over."""

import numpy as np
import pytest

from snapline.core.messages import END_OF_TIME
from snapline.workload import WORKLOADS
from snapline.workload.common.base import Params
from snapline.workload.common.generated import PERIOD_MS, Generated
from snapline.workload.common.own import generated

SIZES = {"full": True, "small": False}


def sources(workload: str, *, endless: bool, full: bool) -> list[Generated]:
    params = Params(1, 2, 200, 2_000, full=full, endless=endless)
    nodes = WORKLOADS[workload].build(params).graph.nodes.values()
    return [node.ingress for node in nodes if isinstance(node.ingress, Generated)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_workload_goes_on_beyond_its_period_at_the_same_rate(workload, size):
    for source in sources(workload, endless=True, full=SIZES[size]):
        far, some = 1_000 * source.records, 50
        assert source.end(0) is None
        batch = source.make(0, far, far + some)
        assert batch.length == some
        assert abs(int(batch["time"][0]) - far * 2_000 // source.records) <= 4_000
        due_ms = source.due_ms(0, far)
        assert source.due_through(0, due_ms) > far >= source.due_through(0, due_ms - 1)
        assert source.watermark(0, far) != END_OF_TIME


@pytest.mark.parametrize("workload", WORKLOADS)
def test_within_its_period_an_endless_input_is_the_bounded_one(workload):
    pairs = zip(
        sources(workload, endless=True, full=True),
        sources(workload, endless=False, full=True),
        strict=True,
    )
    for endless, bounded in pairs:
        some = bounded.records // 2
        assert endless.make(1, 0, some).columns.keys() == bounded.make(1, 0, some).columns.keys()
        assert np.array_equal(endless.make(1, 0, some)["time"], bounded.make(1, 0, some)["time"])
        assert endless.identity != bounded.identity


def test_a_feed_of_a_users_own_goes_on_as_well():
    feed = generated(lambda n: {"key": n % 10}, rate=100)
    source = feed.bind_endless(2)
    assert source.end(0) is None
    far = source.due_through(0, 50 * PERIOD_MS)
    assert far == 50 * PERIOD_MS // 1000 * 100 // 2 + 1
    assert source.read(1, far, far + 2)["key"].tolist() == [
        (2 * n + 1) % 10 for n in (far, far + 1)
    ]
