"""The operators of query 6: auctions that close with their highest bid, and records in order of time.

Both hold what they are given until the watermark says that nothing earlier will come. So what they put out
is in the order of event time, whatever the order in which it came.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from snapline.batch import Array, Batch, concat
from snapline.dataflow.operators.operator import OUT, Capture, Operator, Outputs
from snapline.ids import Millis

AUCTIONS: Final = "auctions"
BIDS: Final = "bids"
_HELD: Final = "held"


class _Holding(Operator):
    """Holds records of several kinds. What it holds is small, so every capture is a full one."""

    uses_time = True

    def __init__(self) -> None:
        self._held: dict[str, Batch] = {}

    def hold(self, kind: str, batch: Batch) -> None:
        """Hold records of a kind, behind those that are held."""
        held = self._held.get(kind)
        self._held[kind] = batch if held is None or not held.length else concat([held, batch])

    def release(self, kind: str, chosen: Array) -> Batch:
        """Give up some of the records of a kind, and return them."""
        held = self._held[kind]
        self._held[kind] = held.take(~chosen)
        return held.take(chosen)

    def expire(self, time: Millis) -> int:
        """Forget what would be put out now: a life before has put it out, or something of it was lost."""
        return sum(batch.length for _, batch in self.on_watermark(time))

    def capture(self, *, full: bool) -> Capture:
        """Capture what is held: batches never change."""
        return Capture(True, dict(self._held))

    def restore(self, captures: Sequence[Capture]) -> None:
        """Hold again what was held."""
        if captures:
            held = captures[-1].parts
            self._held = {kind: batch for kind, batch in held.items() if batch.length}


class Closing(_Holding):
    """Puts out each auction that somebody bid on, when it closes, with the highest bid.

    A bid counts if the auction was open at its time. Both ports are routed by auction.
    """

    def process(self, port: str, batch: Batch) -> Outputs:
        """Hold auctions and bids."""
        if port == AUCTIONS:
            none = np.zeros(batch.length, np.int64)
            kept = batch.select("auction", "seller", "time", "expires").with_columns(price=none)
        else:
            kept = batch.select("auction", "price", "time")
        self.hold(port, kept)
        return ()

    def on_watermark(self, time: Millis) -> Outputs:
        """Let the bids count that are complete, and close auctions."""
        auctions = self._held.get(AUCTIONS)
        if auctions is None or not auctions.length:
            if BIDS in self._held:
                self.release(BIDS, self._held[BIDS]["time"] < time)
            return ()
        if BIDS in self._held:
            bids = self.release(BIDS, self._held[BIDS]["time"] < time)
            auctions = auctions.with_columns(price=_raised(auctions, bids))
            self._held[AUCTIONS] = auctions
        closed = self.release(AUCTIONS, auctions["expires"] <= time)
        sold = closed.take(closed["price"] > 0)
        if not sold.length:
            return ()
        order = np.lexsort((sold["auction"], sold["expires"]))
        won = sold.select("auction", "seller", "price").with_columns(time=sold["expires"])
        return ((OUT, won.take(order)),)


def _raised(auctions: Batch, bids: Batch) -> Array:
    """The highest bid of each auction so far, with these bids."""
    prices: Array = auctions["price"].copy()
    order = np.argsort(auctions["auction"])
    ids = auctions["auction"][order]
    at = order[np.minimum(np.searchsorted(ids, bids["auction"]), len(ids) - 1)]
    counts = (
        (auctions["auction"][at] == bids["auction"])
        & (auctions["time"][at] <= bids["time"])
        & (bids["time"] < auctions["expires"][at])
    )
    np.maximum.at(prices, at[counts], bids["price"][counts])
    return prices


class InOrder(_Holding):
    """Puts records out in the order of their times, and at one time in that of their auctions."""

    def process(self, port: str, batch: Batch) -> Outputs:
        """Hold the records."""
        self.hold(_HELD, batch)
        return ()

    def on_watermark(self, time: Millis) -> Outputs:
        """Put out the records to which nothing earlier will come."""
        if _HELD not in self._held:
            return ()
        passed = self.release(_HELD, self._held[_HELD]["time"] < time)
        if not passed.length:
            return ()
        return ((OUT, passed.take(np.lexsort((passed["auction"], passed["time"])))),)
