"""The graphs at full size and with a hot node."""

from dataclasses import replace

import numpy as np
import pytest

from snapline.workload.common.base import Params
from snapline.workload.nhop import model as nhop
from snapline.workload.nhop.oracle import walks_of
from snapline.workload.reachability import model as reachability

FULL = Params(seed=3, partitions=2, records=20_000, duration_ms=20_000, full=True)


def test_reachability_has_the_shares_and_the_nodes_of_the_paper():
    events = reachability.events(FULL).everything()
    kinds = np.bincount(events["kind"]) / len(events)
    assert kinds.tolist() == [0.6, 0.15, 0.2, 0.05]
    for end in ("start", "end"):
        assert events[end].min() < 1_000
        assert 999_000 < events[end].max() < 1_000_000


def test_a_hot_node_is_where_links_start_and_neither_where_they_end_nor_a_source():
    params = replace(FULL, hot=30)
    events = reachability.events(params).everything()
    links = events.take(events["kind"] == reachability.LINK)
    nodes, counts = np.unique(links["start"], return_counts=True)
    hot = nodes[np.argmax(counts)]
    assert 0.28 < counts.max() / len(links) < 0.32
    assert np.count_nonzero(links["end"] == hot) <= 2
    sources = events.take(events["kind"] == reachability.SOURCE)
    assert np.count_nonzero(sources["start"] == hot) <= 2
    cold = reachability.events(FULL).everything()
    assert (cold["target"] == events["target"]).all()


def test_n_hop_has_the_time_to_live_of_the_thesis():
    assert nhop.ttl_ms(FULL) == 5_000
    assert nhop.HOPS == 3


@pytest.mark.parametrize("factor", [1, 3])
@pytest.mark.parametrize("duration_ms", [3_000, 20_000])
def test_walks_stay_in_proportion_to_the_edges_whatever_the_rate(factor, duration_ms):
    params = replace(FULL, records=4_000 * factor, duration_ms=duration_ms)
    walks = len(walks_of(params))
    assert 0.2 < walks / (params.partitions * params.records) < 1


def test_a_hot_node_is_where_edges_start_and_not_where_they_end():
    edges = nhop.edges(replace(FULL, hot=20, hot_ms=10_000)).everything()
    starts = np.sort(np.unique(edges["start"], return_counts=True)[1])[::-1]
    assert (np.abs(starts[:2] / len(edges) - 0.1) < 0.01).all()
    assert starts[2] < 20
    assert np.unique(edges["end"], return_counts=True)[1].max() < 20


def test_small_graphs_are_what_they_were():
    small = Params()
    assert reachability.node_count(small) == 108
    assert nhop.node_count(small) == 72
    assert nhop.ttl_ms(small) == 600
