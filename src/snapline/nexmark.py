"""NexMark's streams as inputs of your own dataflows: `flow.source(sl.nexmark.bids(rate=50_000))`.

An auction house: people register, open auctions and bid. Every stream is a pure function of its seed. The
sellers of `auctions` are people of `persons` if both have the same seed and there are three auctions for
each person, as in NexMark: `persons(rate=100)` goes with `auctions(rate=300)`.
"""

from functools import partial

from snapline.workload.generated import GeneratedFeed
from snapline.workload.nexmark import model

__all__ = ["auctions", "bids", "persons"]


def persons(*, rate: int, seed: int = 1) -> GeneratedFeed:
    """People who register: id, time, person, name, city, state."""
    scale = model.AUCTIONS_PER_PERSON
    return GeneratedFeed("persons", model.person_fields, rate, seed, scale=scale)


def auctions(*, rate: int, seed: int = 1) -> GeneratedFeed:
    """Auctions that open: id, time, auction, seller, category, reserve."""
    return GeneratedFeed("auctions", model.auction_fields, rate, seed)


def bids(*, rate: int, seed: int = 1, bidders: int = 1_000) -> GeneratedFeed:
    """Bids on auctions by so many people: id, time, auction, bidder, price."""
    return GeneratedFeed("bids", partial(model.bid_fields, bidders=bidders), rate, seed)
