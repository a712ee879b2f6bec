"""NexMark's streams: all fields, two sizes, and people and auctions that a bid may know."""

import hashlib
from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from interleaver import run
from snapline.batch import concat
from snapline.core.guarantee import Guarantee
from snapline.errors import UsageError
from snapline.workload import WORKLOADS
from snapline.workload.common.base import Params
from snapline.workload.nexmark import model
from snapline.workload.nexmark import streams as nexmark
from snapline.workload.nexmark.oracle import SINK, window_ms

pytestmark = pytest.mark.usefixtures("both_forms")

SMALL = Params(seed=7)
FULL = Params(seed=7, partitions=2, records=138_000, duration_ms=60_000, full=True)
FIELDS = {
    "persons": "person name email credit_card city state extra",
    "auctions": "auction item description initial_bid reserve expires seller category extra",
    "bids": "auction bidder price channel url extra",
}
SOURCES = {"persons": model.persons, "auctions": model.auctions, "bids": model.bids}
every_stream = pytest.mark.parametrize("stream", SOURCES)


@cache
def whole(stream, params=FULL):
    """A stream, sorted by when its records come; as many as come for so many bids."""
    share = {"persons": 46, "auctions": 46, "bids": 1}[stream]
    auctions = replace(params, records=params.records * 3 // share if share > 1 else params.records)
    batch = SOURCES[stream](auctions).everything()
    return batch.take(np.argsort(batch["time"], kind="stable"))


def everything(stream, params):
    return SOURCES[stream](params, columns=tuple(FIELDS[stream].split()))


# Of both sizes.


@every_stream
@pytest.mark.parametrize("params", [SMALL, FULL], ids=["small", "full"])
def test_a_stream_has_all_fields_and_any_range_in_any_order_gives_the_same(stream, params):
    source = everything(stream, params)
    assert list(source.schema) == ["id", "time", *FIELDS[stream].split()]
    ranges = [(40, 60), (0, 1), (1, 40)]
    made = {a: source.make(1, a, b) for a, b in ranges}
    assert concat([made[a] for a in sorted(made)]) == source.make(1, 0, 60)


@every_stream
@pytest.mark.parametrize("params", [SMALL, FULL], ids=["small", "full"])
def test_a_column_is_the_same_alone_and_among_others(stream, params):
    among = everything(stream, replace(params, hot=30)).make(1, 0, 50)
    for column in FIELDS[stream].split():
        alone = SOURCES[stream](replace(params, hot=30), columns=(column,)).make(1, 0, 50)
        assert list(alone.columns) == ["id", "time", column]
        assert alone == among.select("id", "time", column)


@pytest.mark.parametrize(
    ("params", "digests"),
    [
        (SMALL, ["96ac4288451163bc", "719259f57392e42b", "c955e16028598401"]),
        (
            Params(seed=3, partitions=2, records=4_999, duration_ms=20_000),
            ["6a7705ff1eb9e5df", "9fa4ff99266e8f62", "05f96c3a3a19f348"],
        ),
    ],
)
def test_the_small_size_never_changes_between_versions(params, digests):
    # Simulated runs, and the story that the README tells, are made of it.
    sources = model.persons(params), model.auctions(params, 60), model.bids(params)
    everything = [repr(source.everything().to_pydict()).encode() for source in sources]
    made = [hashlib.sha256(rows).hexdigest()[:16] for rows in everything]
    assert made == digests


@pytest.mark.parametrize("params", [SMALL, FULL], ids=["small", "full"])
def test_an_auction_begins_below_its_reserve_and_ends_after_it_has_opened(params):
    lots = everything("auctions", params).make(0, 0, 5_000)
    assert (lots["initial_bid"] > 0).all()
    assert (lots["initial_bid"] <= lots["reserve"]).all()
    assert (lots["expires"] > lots["time"]).all()


def test_texts_look_like_what_they_are():
    person = everything("persons", FULL).make(0, 0, 200).to_pydict()
    bid = everything("bids", FULL).make(0, 0, 200).to_pydict()
    assert all(mail.endswith(".com") and mail.index("@") == 7 for mail in person["email"])
    assert all(len(card.replace(" ", "")) == 16 for card in person["credit_card"])
    assert all(url.startswith("https://www.nexmark.com/") for url in bid["url"])
    assert {"Google", "Apple", "channel-3"} <= set(bid["channel"])
    assert len({len(extra) for extra in bid["extra"]}) > 20
    assert len(set(person["email"])) > 150


# Of the full size.


def test_a_bid_names_one_of_the_latest_thousand_people_who_are_there():
    bids, people = whole("bids"), whole("persons")
    assert len(people) == FULL.partitions * FULL.records // 46
    registered = np.empty(len(people), np.int64)
    registered[people["person"]] = people["time"]
    assert (registered[bids["bidder"]] <= bids["time"]).all()
    there = np.searchsorted(people["time"], bids["time"], side="right")
    age = there - bids["bidder"]
    # People whose stamps are equal to a bid's may come a little later than the bid.
    assert age.max() <= 1_000 + FULL.partitions * 2
    late = bids["time"] > FULL.duration_ms // 2
    ages = np.bincount(age[late], minlength=1_000)[10:990]
    assert ages.min() > 0.5 * ages.mean()


def test_a_bid_names_one_of_the_latest_hundred_auctions_that_are_there():
    bids, lots = whole("bids"), whole("auctions")
    assert len(lots) == 3 * FULL.partitions * FULL.records // 46
    opened = np.empty(len(lots), np.int64)
    opened[lots["auction"]] = lots["time"]
    assert (opened[bids["auction"]] <= bids["time"]).all()
    there = np.searchsorted(lots["time"], bids["time"], side="right")
    assert (there - bids["auction"]).max() <= 100 + FULL.partitions * 2


def test_a_seller_is_one_of_the_latest_thousand_people_or_the_one_who_comes_next():
    lots, people = whole("auctions"), whole("persons")
    there = np.searchsorted(people["time"], lots["time"], side="right")
    age = there - lots["seller"]
    assert age.max() <= 1_000 + FULL.partitions * 2
    assert age.min() <= 0
    assert lots["seller"].min() >= 0
    assert lots["seller"].max() < len(people)


@pytest.mark.parametrize(
    ("stream", "field", "share", "newest", "oldest"),
    [
        ("bids", "bidder", 46, 1, 1_000),
        ("bids", "auction", 46 / 3, 1, 100),
        ("auctions", "seller", 3, 0, 1_000),
    ],
)
def test_so_many_are_known_and_all_of_them(stream, field, share, newest, oldest):
    offsets = np.arange(90_000, 130_000)
    batch = SOURCES[stream](FULL).make(0, 90_000, 130_000)
    there = (offsets * round(FULL.records / share) // FULL.records + 1) * FULL.partitions
    ages = np.unique(there - batch[field])
    assert ages.tolist() == list(range(newest, oldest + 1))


@pytest.mark.parametrize("seed", range(20))
def test_whoever_is_named_registers_before_the_end(seed):
    params = Params(seed=seed, partitions=2, records=9, duration_ms=100, full=True)
    assert model.auctions(params).everything()["seller"].max() < 6
    assert model.bids(params).everything()["bidder"].max() < 2


def test_a_stream_of_few_records_names_only_who_is_there():
    tiny = Params(partitions=1, records=1, duration_ms=5, full=True)
    assert model.bids(tiny).everything()["bidder"].tolist() == [0]
    assert model.bids(tiny).everything()["auction"].tolist() == [0]
    assert model.auctions(tiny).everything()["seller"].tolist() == [0]
    ids = model.bids(replace(tiny, records=200)).everything()["bidder"]
    assert set(ids.tolist()) == {0, 1, 2, 3}


def test_there_are_five_categories_six_states_and_prices_of_all_magnitudes():
    lots, people, bids = whole("auctions"), whole("persons"), whole("bids")
    categories = np.bincount(lots["category"])[10:]
    assert len(categories) == 5
    assert categories.min() > 0.9 * categories.mean()
    states = np.bincount(people["state"].codes)
    assert len(states) == 6
    assert states.min() > 0.8 * states.mean()
    magnitudes = np.bincount(np.log10(bids["price"]).astype(int), minlength=9)[2:8]
    assert magnitudes.sum() > 0.99 * len(bids)
    assert magnitudes.min() > 0.9 * magnitudes.mean()


def test_fields_that_share_a_draw_are_independent():
    bids = whole("bids")
    late = bids["time"] > FULL.duration_ms // 2
    columns = [bids[name][late].astype(float) for name in ("auction", "bidder", "price")]
    offsets = bids["id"][late] & ((1 << 40) - 1)
    fresh = [columns[0] - offsets * 6 / 46, columns[1] - offsets * 2 / 46, np.log(columns[2])]
    correlation = np.corrcoef(fresh) - np.eye(3)
    assert abs(correlation).max() < 0.02


@pytest.mark.parametrize(
    ("stream", "field", "count"), [("bids", "bidder", 46), ("auctions", "seller", 3)]
)
@pytest.mark.parametrize("hot_ms", [0, 10_000])
def test_the_hot_key_is_there_when_it_becomes_the_hot_one(stream, field, count, hot_ms):
    batch = SOURCES[stream](replace(FULL, hot=25, hot_ms=hot_ms)).everything()
    periods = batch["time"] // 10_000
    hottest = []
    for period in range(6):
        keys, counts = np.unique(batch[field][periods == period], return_counts=True)
        hottest.append(int(keys[counts.argmax()]))
        assert 0.24 < counts.max() / counts.sum() < 0.27
    if not hot_ms:
        assert set(hottest) <= {0, 1}
        assert len(set(hottest)) == 1
        return
    people = FULL.records // count
    assert [key // FULL.partitions for key in hottest] == [n * people // 6 for n in range(6)]


def test_bids_of_so_many_people_come_from_them_alone():
    for params in (SMALL, FULL):
        bidders = model.bids(params, bidders=30).make(0, 0, 2_000)["bidder"]
        assert set(np.unique(bidders).tolist()) <= set(range(30))
    assert len(np.unique(bidders)) == 30


def test_windows_are_ten_seconds_long_whatever_the_run_is():
    assert window_ms(FULL) == window_ms(replace(FULL, duration_ms=600_000)) == 10_000
    assert window_ms(SMALL) == 400


@pytest.mark.parametrize("name", ["q1", "q3", "q8", "q12"])
@pytest.mark.parametrize("hot", [0, 30])
def test_joins_match_and_windows_fill_in_the_full_size(name, hot):
    params = Params(5, 2, 900, 25_000, full=True, hot=hot, hot_ms=hot * 100)
    result = run(WORKLOADS[name], params)
    assert WORKLOADS[name].judge(params, result.output, result.state, Guarantee.EXACTLY_ONCE) == []
    output = result.output[SINK]
    assert len(output) > 80
    if name in ("q8", "q12"):
        assert set(output["window"].tolist()) == {0, 10_000, 20_000}


@pytest.mark.parametrize("name", ["q5", "q6", "q7"])
@pytest.mark.parametrize("hot", [0, 30])
def test_dashboards_show_something_in_the_full_size(name, hot):
    params = Params(5, 2, 2_300, 25_000, full=True, hot=hot, hot_ms=hot * 100)
    result = run(WORKLOADS[name], params)
    assert WORKLOADS[name].judge(params, result.output, result.state, Guarantee.EXACTLY_ONCE) == []
    output = result.output[SINK]
    if name == "q6":
        assert len(output) > 150, "most of the 300 auctions are sold"
        most = max(Counter(output["seller"].tolist()).values())
        assert most > 10 or not hot, "a hot seller fills the window"
    else:
        assert set(output["window"].tolist()) == set(range(-9_000, 25_000, 1_000))


# As inputs of a user's own flow.


def test_the_three_streams_come_in_the_proportions_of_nexmark():
    persons, auctions, bids = (feed.bind(2, 10_000) for feed in nexmark.streams(rate=5_000, seed=4))
    assert [s.records for s in (persons, auctions, bids)] == [500, 1_500, 23_000]
    people, lots = persons.everything()["person"], auctions.everything()
    assert set(lots["seller"].tolist()) <= set(people.tolist())
    assert set(bids.everything()["bidder"].tolist()) <= set(people.tolist())
    assert set(bids.everything()["auction"].tolist()) <= set(lots["auction"].tolist())


@every_stream
def test_a_feed_has_all_fields_or_those_that_are_asked_for(stream):
    feed = getattr(nexmark, stream)
    assert list(feed(rate=10).schema) == ["id", "time", *FIELDS[stream].split()]
    one = FIELDS[stream].split()[1]
    assert list(feed(rate=10, columns=("time", one)).schema) == ["id", "time", one]
    with pytest.raises(UsageError, match=f"{stream} have no column 'colour': they have .*{one}"):
        feed(rate=10, columns=("colour",))


def test_a_feed_can_be_hot():
    bids = nexmark.bids(rate=10_000, hot=40, hot_moves="5s", bidders=100).bind(1, 10_000)
    keys = bids.everything()["bidder"].reshape(2, -1)
    first, second = (np.bincount(half, minlength=100) for half in keys)
    assert 0.39 < first.max() / first.sum() < 0.43
    assert (first.argmax() + 1) % 100 == second.argmax()


@pytest.mark.parametrize(("hot", "moves"), [(101, 0), (-1, 0), (0, "5s")])
def test_a_feed_whose_heat_makes_no_sense_is_refused(hot, moves):
    with pytest.raises(UsageError, match="hot"):
        nexmark.bids(rate=10, hot=hot, hot_moves=moves).bind(1, 1_000)


def test_streams_that_are_too_slow_for_a_person_are_refused():
    with pytest.raises(UsageError, match="50 or more, not 49"):
        nexmark.streams(rate=49)
