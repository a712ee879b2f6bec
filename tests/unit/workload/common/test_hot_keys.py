"""Skew: a share of the records names the hot key, and the hot key may move."""

from dataclasses import replace

import numpy as np
import pytest

from snapline.workload.common.base import Params
from snapline.workload.common.generated import draw, heated, next_of
from snapline.workload.counting.model import KEYS, KEYS_FULL, records

SIZE = Params(seed=3, partitions=2, records=20_000, duration_ms=10_000, full=True)


def hottest_in(keys):
    """The most frequent key and its share."""
    values, counts = np.unique(keys, return_counts=True)
    return int(values[counts.argmax()]), counts.max() / len(keys)


@pytest.mark.parametrize("percent", [10, 30, 50, 100])
def test_so_many_percent_of_the_records_name_the_hot_key(percent):
    source = records(replace(SIZE, records=200_000, hot=percent))
    keys = [source.make(partition, 0, source.records)["key"] for partition in range(2)]
    (one, share), (other, _) = map(hottest_in, keys)
    assert one == other
    # Five standard deviations of the draw, and the keys that are the hot one by chance.
    assert abs(share - percent / 100) <= 5 * (0.25 / len(keys[0])) ** 0.5 + 1 / KEYS_FULL


def test_the_records_that_are_not_hot_are_what_they_were():
    cold, warm = (
        records(replace(SIZE, hot=percent)).make(0, 0, 5_000)["key"] for percent in (0, 25)
    )
    moved = cold != warm
    assert len(np.unique(warm[moved])) == 1
    assert 0.2 < moved.mean() < 0.3


def test_the_hot_key_moves_with_the_time_in_all_partitions_at_once():
    source = records(replace(SIZE, hot=60, hot_ms=2_500))
    seen = []
    for partition in range(2):
        whole = source.make(partition, 0, source.records)
        periods = whole["time"] // 2_500
        seen.append([hottest_in(whole["key"][periods == period]) for period in range(4)])
    hottest = [[key for key, _ in periods] for periods in seen]
    assert hottest[0] == hottest[1]
    assert len(set(hottest[0])) == 4
    assert all(0.57 < share < 0.63 for periods in seen for _, share in periods)


def test_skew_is_the_same_in_whatever_pieces_it_is_read():
    source = records(replace(SIZE, hot=40, hot_ms=700))
    whole = source.make(1, 0, 9_000)["key"]
    pieces = [source.make(1, a, b)["key"] for a, b in ((0, 1), (1, 4_000), (4_000, 9_000))]
    assert np.concatenate(pieces).tolist() == whole.tolist()


def test_every_key_can_be_the_hot_one_and_no_other_can():
    offsets = np.arange(200)
    keys = draw(SIZE, "field", 0, offsets, KEYS)
    moving = replace(SIZE, records=200, hot=100, hot_ms=SIZE.duration_ms // 50)
    hot = heated(moving, "field", 0, offsets, 200, keys, next_of(moving, "field", KEYS))
    assert set(hot.tolist()) == set(range(KEYS))
