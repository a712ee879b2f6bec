"""The three streams of NexMark, in a small form.

Fields and roles are NexMark's; numbers are scaled down so that a run of a few hundred records still
has joins that match and windows that fill. As there, one person comes for three auctions, and an
auction is sold by somebody who registered lately. Persons and auctions are numbered densely over
all partitions. A seller may also be the person who is about to register, so either side of a join
may come first.
"""

from collections.abc import Mapping

import numpy as np

from snapline.batch import Column, Varlen, Words
from snapline.ids import Millis
from snapline.workload.base import Params
from snapline.workload.generated import Generated, Ints, draw

STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES = ("Bend", "Boise", "Kent", "Palo Alto", "Phoenix", "Portland", "Redmond")
FIRST_CATEGORY = 10
CATEGORIES = 3
BIDDERS = 8
AUCTIONS_PER_PERSON = 3
ACTIVE = 6  # a seller is among this many of the latest persons of a partition

_FIRST = ("Ada", "Deiter", "Edsger", "Grace", "Jaiden", "Kate", "Luke", "Vicky")
_LAST = ("Abrams", "Bartels", "Noris", "Shultz", "Smith", "Walton", "White")
_NAMES = Varlen.of("str", [f"{first} {last}" for first in _FIRST for last in _LAST])


def persons(params: Params, disorder_ms: Millis = 0) -> Generated:
    """People who register."""
    return Generated("persons", params, person_fields, _persons_per_partition(params), disorder_ms)


def auctions(params: Params, disorder_ms: Millis = 0) -> Generated:
    """Auctions that open."""
    return Generated("auctions", params, auction_fields, params.records, disorder_ms)


def bids(params: Params) -> Generated:
    """Bids on auctions."""
    return Generated("bids", params, bid_fields, params.records)


def _persons_per_partition(params: Params) -> int:
    return max(params.records // AUCTIONS_PER_PERSON, 1)


def person_fields(params: Params, partition: int, offsets: Ints) -> Mapping[str, Column]:
    """The columns of persons."""

    def pick(field: str, below: int) -> Ints:
        return draw(params, f"persons.{field}", partition, offsets, below)

    return {
        "person": offsets * params.partitions + partition,
        "name": _NAMES.take(pick("name", len(_NAMES))),
        "city": Words(pick("city", len(CITIES)).astype(np.int32), CITIES),
        "state": Words(pick("state", len(STATES)).astype(np.int32), STATES),
    }


def auction_fields(params: Params, partition: int, offsets: Ints) -> Mapping[str, Column]:
    """The columns of auctions."""

    def pick(field: str, below: int) -> Ints:
        return draw(params, f"auctions.{field}", partition, offsets, below)

    people = _persons_per_partition(params)
    next_person = offsets * people // params.records + 1
    registered = np.clip(next_person - pick("age", ACTIVE), 0, people - 1)
    return {
        "auction": offsets * params.partitions + partition,
        "seller": registered * params.partitions + pick("seller", params.partitions),
        "category": FIRST_CATEGORY + pick("category", CATEGORIES),
        "reserve": 100 + pick("reserve", 9_900),
    }


def bid_fields(
    params: Params, partition: int, offsets: Ints, bidders: int = BIDDERS
) -> Mapping[str, Column]:
    """The columns of bids."""

    def pick(field: str, below: int) -> Ints:
        return draw(params, f"bids.{field}", partition, offsets, below)

    return {
        "auction": pick("auction", params.partitions * params.records),
        "bidder": pick("bidder", bidders),
        "price": 100 + pick("price", 99_900),  # in cents of a dollar
    }
