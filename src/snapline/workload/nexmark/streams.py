"""NexMark's streams as inputs of your own dataflows: `flow.source(sl.nexmark.bids(rate=50_000))`.

An auction house: people register, open auctions and bid. Every stream is a pure function of its seed. The
streams fit together if they have the same seed and rates in NexMark's proportions, 1 : 3 : 46, as `streams`
gives them: sellers and bidders are then people of `persons`, and bids go to auctions of `auctions`.

A stream has all fields of NexMark, beside `id` and `time`; those that are not asked for are never made:
`sl.nexmark.bids(rate=50_000, columns=("bidder", "price"))`. `hot=20` lets 20 percent of the bids come from
one bidder and go to one auction (of the auctions: belong to one seller), and with `hot_moves="5s"` another
one becomes the hot one every five seconds.
"""

from collections.abc import Sequence
from typing import NamedTuple

from snapline.durations import millis
from snapline.errors import UsageError
from snapline.ids import Millis
from snapline.workload.common.generated import GeneratedFeed
from snapline.workload.nexmark import model

__all__ = ["Streams", "auctions", "bids", "persons", "streams"]

Columns = Sequence[str] | None
"""Names of fields; None: all."""


class Streams(NamedTuple):
    """The three streams of the auction house."""

    persons: GeneratedFeed
    auctions: GeneratedFeed
    bids: GeneratedFeed


def streams(*, rate: int, seed: int = 1) -> Streams:
    """All three streams, `rate` records a second together: 1 person and 3 auctions for 46 bids."""
    each = rate // (1 + model.AUCTIONS_PER_PERSON + model.BIDS_PER_PERSON)
    if each < 1:
        raise UsageError(
            f"in 50 records there is one person: the rate must be 50 or more, not {rate}"
        )
    return Streams(
        persons(rate=each, seed=seed),
        auctions(rate=each * model.AUCTIONS_PER_PERSON, seed=seed),
        bids(rate=each * model.BIDS_PER_PERSON, seed=seed),
    )


def persons(*, rate: int, seed: int = 1, columns: Columns = None) -> GeneratedFeed:
    """People who register: person, name, email, credit_card, city, state, extra."""
    fields, scale = model.projection("persons", columns), model.AUCTIONS_PER_PERSON
    return GeneratedFeed("persons", fields, rate, seed, scale=scale, full=True)


def auctions(
    *,
    rate: int,
    seed: int = 1,
    columns: Columns = None,
    hot: int = 0,
    hot_moves: str | Millis = 0,
) -> GeneratedFeed:
    """Auctions that open.

    Fields: auction, item, description, initial_bid, reserve, expires, seller, category, extra.
    """
    fields, hot_ms = model.projection("auctions", columns), millis(hot_moves, "hot_moves")
    return GeneratedFeed("auctions", fields, rate, seed, full=True, hot=hot, hot_ms=hot_ms)


def bids(
    *,
    rate: int,
    seed: int = 1,
    columns: Columns = None,
    bidders: int | None = None,
    hot: int = 0,
    hot_moves: str | Millis = 0,
) -> GeneratedFeed:
    """Bids on auctions: auction, bidder, price, channel, url, extra.

    They come from the thousand people who registered last, or from so many as `bidders` says.
    """
    fields, hot_ms = model.projection("bids", columns, bidders), millis(hot_moves, "hot_moves")
    return GeneratedFeed("bids", fields, rate, seed, full=True, hot=hot, hot_ms=hot_ms)
