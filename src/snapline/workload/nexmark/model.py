"""The three streams of NexMark: people register, open auctions, and bid.

Every field is a function of its own, so a source makes only the columns that are asked for. Fields and
roles are NexMark's, in two sizes.

*Full* (`params.full`): for one person there are three auctions and 46 bids, as if the three streams ran
side by side. A bid names one of the 1,000 latest people and one of the 100 latest auctions at its time. A
seller is one of the 1,000 latest people, or the one who registers next, so either side of a join may come
first. Prices are spread over six orders of magnitude. Names, cities, channels and all random strings come
from tables, so they repeat sooner than NexMark's.

*Small*: so few people, auctions and categories that a run of a few hundred records still has joins that
match and windows that fill. A bid names any of eight people, and any auction of the run.

With `params.hot` so many percent of the bids go to the hot auction, as many come from the hot bidder, and
as many auctions are the hot seller's. In the full size a key that becomes the hot one is the latest at
that time. (In NexMark a hot key lasts until a hundred others have come.)
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from snapline.batch import Column, Words
from snapline.errors import UsageError
from snapline.ids import Millis
from snapline.workload.common.base import Params
from snapline.workload.common.generated import Generated, Ints
from snapline.workload.nexmark.rows import NexmarkRows
from snapline.workload.nexmark.texts import Texts, texts_of

AUCTIONS_PER_PERSON = 3
BIDS_PER_PERSON = 46
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES = ("Bend", "Boise", "Kent", "Palo Alto", "Phoenix", "Portland", "Redmond")
FIRST_CATEGORY = 10
CATEGORIES, CATEGORIES_FULL = 3, 5
BIDDERS = 8  # of the small size
ACTIVE = 6  # small: a seller is among this many of the latest people of a partition ...
ACTIVE_FULL = 1_000  # ... full: of all partitions, and so is a bidder
IN_FLIGHT = 100  # auctions that are open at a time

#: what the queries use; `id` and `time` are always there
PERSON_COLUMNS = ("person", "name", "city", "state")
AUCTION_COLUMNS = ("auction", "seller", "category", "reserve")
BID_COLUMNS = ("auction", "bidder", "price")

_FIRST = ("Ada", "Deiter", "Edsger", "Grace", "Jaiden", "Kate", "Luke", "Vicky")
_LAST = ("Abrams", "Bartels", "Noris", "Shultz", "Smith", "Walton", "White")
_NAMES = tuple(f"{first} {last}" for first in _FIRST for last in _LAST)
_NAME_TEXTS = Texts(_NAMES)
_CHANNELS = ("Apple", "Baidu", "Facebook", "Google", *(f"channel-{n}" for n in range(28)))

# From one to a million dollars, in cents: 20 octaves of 64 even steps. NexMark's 10**(6x) dollars, within
# a tenth, in integers, so that a peer in another language can repeat it.
_OCTAVES, _STEPS = 20, 64
_PRICES = np.array([(100 * (64 + n % 64) << n // 64) // 64 for n in range(_OCTAVES * _STEPS)])

Maker: TypeAlias = Callable[[NexmarkRows], Column]


def _text(field: str) -> Maker:
    """A field of random text."""

    def make(rows: NexmarkRows) -> Column:
        table = texts_of(f"{rows.stream}.{field}")
        return table.take(rows.pick(field, len(table)))

    return make


def _words(codes: Ints, values: tuple[str, ...]) -> Words:
    return Words(codes.astype(np.int32), values)


def _price(rows: NexmarkRows, first: int, width: int) -> Ints:
    return rows.entry(first, width, _PRICES)


# Of persons.


def _name(rows: NexmarkRows) -> Column:
    if rows.params.full:
        return _words(rows.part(0, 21, len(_NAMES)), _NAMES)
    return _NAME_TEXTS.take(rows.pick("name", len(_NAMES)))


def _city(rows: NexmarkRows) -> Column:
    full, count = rows.params.full, len(CITIES)
    return _words(rows.part(21, 21, count) if full else rows.pick("city", count), CITIES)


def _state(rows: NexmarkRows) -> Column:
    full, count = rows.params.full, len(STATES)
    return _words(rows.part(42, 21, count) if full else rows.pick("state", count), STATES)


# Of auctions.


def _seller(rows: NexmarkRows) -> Column:
    params, people = rows.params, persons_per_partition(rows.params)
    if params.full:
        sellers = rows.latest(0, 21, people, ACTIVE_FULL, ahead=True)
        if not params.endless:
            np.minimum(sellers, people * params.partitions - 1, out=sellers)
    else:
        next_person = rows.offsets * people // params.records + 1
        newest = None if params.endless else people - 1
        registered = np.clip(next_person - rows.pick("age", ACTIVE), 0, newest)
        sellers = registered * params.partitions + rows.pick("seller", params.partitions)
    return rows.heated("seller", sellers, rows.latest_of(people))


def _category(rows: NexmarkRows) -> Column:
    if rows.params.full:
        return FIRST_CATEGORY + rows.part(21, 11, CATEGORIES_FULL)
    return FIRST_CATEGORY + rows.pick("category", CATEGORIES)


def _initial_bid(rows: NexmarkRows) -> Column:
    if rows.params.full:
        return _price(rows, 32, 16)
    return 1 + rows.pick("initial_bid", _reserve(rows))


def _reserve(rows: NexmarkRows) -> Ints:
    if rows.params.full:
        return _price(rows, 32, 16) + _price(rows, 48, 16)
    return 100 + rows.pick("reserve", 9_900)


def _expires(rows: NexmarkRows) -> Column:
    """An auction is open for as long as it takes until `IN_FLIGHT` others have opened, on average."""
    params = rows.params
    open_ms = max(IN_FLIGHT * params.duration_ms // (params.records * params.partitions), 1)
    due = rows.offsets * params.duration_ms // params.records
    return due + 1 + rows.pick("expires", 2 * open_ms)


# Of bids.


def _lot(rows: NexmarkRows) -> Column:
    params = rows.params
    if not params.full:
        below = params.partitions * params.records
        return rows.heated("auction", rows.pick("auction", below), rows.any_of(below))
    lots = max(params.records * AUCTIONS_PER_PERSON // BIDS_PER_PERSON, 1)
    latest = rows.latest(24, 16, lots, IN_FLIGHT)
    return rows.heated("auction", latest, rows.latest_of(lots))


def _bidder(rows: NexmarkRows) -> Column:
    if not rows.params.full or rows.bidders is not None:
        below = rows.bidders or BIDDERS
        return rows.heated("bidder", rows.pick("bidder", below), rows.any_of(below))
    people = bidders_per_partition(rows.params)
    latest = rows.latest(0, 24, people, ACTIVE_FULL)
    return rows.heated("bidder", latest, rows.latest_of(people))


def _bid_price(rows: NexmarkRows) -> Column:
    if rows.params.full:
        return _price(rows, 40, 24)
    return 100 + rows.pick("price", 99_900)  # in cents of a dollar


def _channel(rows: NexmarkRows) -> Column:
    return _words(rows.pick("channel", len(_CHANNELS)), _CHANNELS)


STREAMS: Mapping[str, Mapping[str, Maker]] = MappingProxyType(
    {
        "persons": {
            "person": lambda rows: rows.numbers,
            "name": _name,
            "email": _text("email"),
            "credit_card": _text("credit_card"),
            "city": _city,
            "state": _state,
            "extra": _text("extra"),
        },
        "auctions": {
            "auction": lambda rows: rows.numbers,
            "item": _text("item"),
            "description": _text("description"),
            "initial_bid": _initial_bid,
            "reserve": _reserve,
            "expires": _expires,
            "seller": _seller,
            "category": _category,
            "extra": _text("extra"),
        },
        "bids": {
            "auction": _lot,
            "bidder": _bidder,
            "price": _bid_price,
            "channel": _channel,
            "url": _text("url"),
            "extra": _text("extra"),
        },
    }
)
"""The fields of each stream."""


@dataclass(frozen=True, slots=True)
class Projection:
    """Some columns of a stream: the `Fields` of a source."""

    stream: str
    columns: tuple[str, ...]
    bidders: int | None = None

    def __call__(self, params: Params, partition: int, offsets: Ints) -> Mapping[str, Column]:
        """These columns at these offsets."""
        rows = NexmarkRows(self.stream, params, partition, offsets, self.bidders)
        makers = STREAMS[self.stream]
        return {column: makers[column](rows) for column in self.columns}


def projection(
    stream: str, columns: Sequence[str] | None = None, bidders: int | None = None
) -> Projection:
    """These columns of a stream, or all of them. Raises UsageError."""
    known = STREAMS[stream]
    if columns is None:
        return Projection(stream, tuple(known), bidders)
    strange = [column for column in columns if column not in (*known, "id", "time")]
    if strange:
        raise UsageError(f"{stream} have no column {strange[0]!r}: they have {', '.join(known)}")
    return Projection(stream, tuple(column for column in columns if column in known), bidders)


def persons(
    params: Params, disorder_ms: Millis = 0, columns: Sequence[str] = PERSON_COLUMNS
) -> Generated:
    """People who register."""
    fields = projection("persons", columns)
    return Generated("persons", params, fields, persons_per_partition(params), disorder_ms)


def auctions(
    params: Params, disorder_ms: Millis = 0, columns: Sequence[str] = AUCTION_COLUMNS
) -> Generated:
    """Auctions that open."""
    fields = projection("auctions", columns)
    return Generated("auctions", params, fields, params.records, disorder_ms)


def bids(
    params: Params, columns: Sequence[str] = BID_COLUMNS, bidders: int | None = None
) -> Generated:
    """Bids on auctions; by so many people, if that is given."""
    return Generated("bids", params, projection("bids", columns, bidders), params.records)


def persons_per_partition(params: Params) -> int:
    """How many people register beside so many auctions."""
    return max(params.records // AUCTIONS_PER_PERSON, 1)


def bidders_per_partition(params: Params) -> int:
    """How many people register beside so many bids, in the full size."""
    return max(params.records // BIDS_PER_PERSON, 1)
