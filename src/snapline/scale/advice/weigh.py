"""From what a protocol does at two intervals to what it would do at any, and which interval fits.

C is the processing time that one checkpoint takes from the busiest slot: its CPU time at two intervals
tells it apart from the constant tax of logs and headers. A failure costs detection, restart, and then the
time to catch up: what came meanwhile, and what is done again because the job went back to a line. How far a
line lies behind is measured in intervals: about half of one where rounds are coordinated, more where not.

A target is met if the upper end of what is predicted meets it. Among the intervals that meet all targets
the cheapest is taken: overhead, and the share of time that failures cost. Without targets that is about
Young's interval, as Daly has corrected it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean
from typing import Final

from snapline.scale.profile import BARS, Checked

LEAST_S, MOST_S, STEP = 0.1, 600.0, 1.25
"""The intervals that are considered: the shortest, the longest, and from one to the next."""

LATENCY_BAR: Final = 0.5
"""By how much a predicted latency is taken to be wrong at most: nobody has compared any."""

RARE: Final = 0.01
"""A share of time that a p99 does not see."""


class Latency(StrEnum):
    """Which latency a target is about: until a row is written, or until readers see it."""

    WRITTEN = "written"
    PUBLISHED = "published"


@dataclass(frozen=True, slots=True)
class Needs:
    """What is asked of a job; None: nothing is asked."""

    mtbf_s: float  # mean time between failures
    rto_s: float | None = None  # the longest recovery, from the failure until all is as before
    p99_ms: float | None = None
    latency: Latency = Latency.WRITTEN


@dataclass(frozen=True, slots=True)
class AtInterval:
    """What a simulated run without failures came to at one interval."""

    interval_s: float
    busy: float  # the share of its time that the busiest slot computes
    bytes_per_record: float
    p99_ms: float | None  # of rows that are written; None: they carry no time
    published_ms: float | None  # of rows that are published; None likewise


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What simulated runs said about a protocol."""

    protocol: str
    plain_busy: float  # `busy` without checkpoints
    often: AtInterval
    seldom: AtInterval
    detection_s: Sequence[float]  # of each failure
    restart_s: Sequence[float]
    lag: Sequence[float]  # how far it went back, in intervals
    checkpoint_s: float  # the longest time of a checkpoint, or of a round


@dataclass(frozen=True, slots=True)
class Between:
    """A predicted value, and the ends between which it is expected."""

    value: float
    low: float
    high: float

    def times(self, factor: float) -> "Between":
        """All three, multiplied."""
        return Between(self.value * factor, self.low * factor, self.high * factor)


@dataclass(frozen=True, slots=True)
class Offer:
    """A protocol at one interval, with what is predicted."""

    protocol: str
    interval_s: float
    overhead: Between  # the share of the capacity that checkpoints take
    recovery_s: Between
    p99_ms: Between | None  # None: no row carries a time
    bytes_per_record: Between
    cost: float  # overhead, and the share of time that failures cost
    misses: tuple[str, ...]  # what is not met: rate, mtbf, rto, p99


@dataclass(frozen=True, slots=True)
class Choice:
    """The best interval of a protocol; of one that cannot meet the targets, the one that comes closest."""

    offer: Offer
    feasible: bool
    binding: str  # what decides the interval, or why nothing fits, in words
    young_s: float  # what Young and Daly say, without targets
    behaviour: Behaviour  # what all of it was computed from


def choose(behaviour: Behaviour, needs: Needs) -> Choice:
    """The best interval of a protocol."""
    young = daly(per_checkpoint(behaviour.often, behaviour.seldom), needs.mtbf_s)
    steps = math.ceil(math.log(MOST_S / LEAST_S) / math.log(STEP))
    grown = (LEAST_S * STEP**n for n in range(steps + 1))
    tried = {min(MOST_S, max(LEAST_S, each)) for each in (*grown, young)}
    offers = [offer_at(behaviour, needs, each) for each in sorted(tried)]
    cheapest = min(offers, key=lambda each: each.cost)
    fitting = [each for each in offers if not each.misses]
    if not fitting:
        why = _why_none(offers, needs)
        return Choice(_closest(offers, needs), False, why, young, behaviour)
    best = min(fitting, key=lambda each: each.cost)
    if best is cheapest:
        ends = {
            LEAST_S: "shortest interval that is tried",
            MOST_S: "longest interval that is tried",
        }
        which = ends.get(best.interval_s, "cheapest interval")
        return Choice(best, True, f"no target: it is the {which}", young, behaviour)
    step = 1 if best.interval_s < cheapest.interval_s else -1
    beyond = offers[offers.index(best) + step]
    longer = "longer" if step > 0 else "shorter"
    names = " and ".join(beyond.misses)
    why = f"{names}: a {longer} interval would be cheaper"
    return Choice(best, True, why, young, behaviour)


def _closest(offers: Sequence[Offer], needs: Needs) -> Offer:
    def excess(offer: Offer) -> float:
        rto = offer.recovery_s.high / needs.rto_s if needs.rto_s else 0.0
        p99 = offer.p99_ms.high / needs.p99_ms if needs.p99_ms and offer.p99_ms else 0.0
        return max(rto, p99, offer.recovery_s.high / needs.mtbf_s)

    return min(offers, key=lambda each: (len(each.misses), excess(each)))


def _why_none(offers: Sequence[Offer], needs: Needs) -> str:
    """Which target cannot be met at any interval; or that each can be, but not all at once."""
    if all("rate" in each.misses for each in offers):
        return "rate: the slots cannot keep up with the input"
    if all("mtbf" in each.misses for each in offers):
        least = min(each.recovery_s.high for each in offers)
        return (
            f"mtbf: recovery takes up to {least:.2g} s at best, and failures come as often as that"
        )
    if all("rto" in each.misses for each in offers):
        least = min(each.recovery_s.high for each in offers)
        return f"rto: recovery takes up to {least:.2g} s at best"
    if all("p99" in each.misses for each in offers):
        least = min(each.p99_ms.high for each in offers if each.p99_ms)
        return f"p99: it is up to {least:.3g} ms at best ({needs.latency})"
    return "no interval meets all targets at once"


def daly(checkpoint_s: float, mtbf_s: float) -> float:
    """The interval that loses least time, if a checkpoint takes so much and failures come so often."""
    if checkpoint_s >= 2 * mtbf_s:
        return mtbf_s
    share = checkpoint_s / (2 * mtbf_s)
    return math.sqrt(2 * checkpoint_s * mtbf_s) * (1 + math.sqrt(share) / 3 + share / 9) - (
        checkpoint_s
    )


def per_checkpoint(often: AtInterval, seldom: AtInterval) -> float:
    """C: the processing time that one checkpoint takes from the busiest slot, in seconds."""
    more = 1 / often.interval_s - 1 / seldom.interval_s
    return max(0.0, (often.busy - seldom.busy) / more)


def offer_at(behaviour: Behaviour, needs: Needs, interval_s: float) -> Offer:
    """What is predicted of a protocol at one interval."""
    seldom = behaviour.seldom
    each_s = per_checkpoint(behaviour.often, seldom)
    busy = max(1e-6, seldom.busy + each_s * (1 / interval_s - 1 / seldom.interval_s))
    overhead = _overhead(behaviour, busy)
    recovery = _recovery(behaviour, busy, interval_s)
    p99 = _p99(behaviour, needs, interval_s, recovery)
    misses = [
        *(["rate"] if busy >= 1 or 2 * behaviour.checkpoint_s > interval_s else []),
        *(["mtbf"] if recovery.high >= needs.mtbf_s else []),
        *(["rto"] if needs.rto_s is not None and recovery.high > needs.rto_s else []),
        *(["p99"] if needs.p99_ms is not None and p99 and p99.high > needs.p99_ms else []),
    ]
    return Offer(
        behaviour.protocol,
        interval_s,
        overhead,
        recovery,
        p99,
        _widened(_bytes(behaviour, interval_s), BARS[Checked.BYTES]),
        overhead.value + recovery.value / needs.mtbf_s,
        tuple(misses),
    )


def _overhead(behaviour: Behaviour, busy: float) -> Between:
    """The share of the capacity that is lost; the capacity that is left is known up to its bar."""
    left, bar = min(1.0, behaviour.plain_busy / busy), BARS[Checked.CAPACITY]
    ends = (max(0.0, 1 - left * (1 + bar)), min(1.0, 1 - left * (1 - bar)))
    return Between(1 - left, *ends)


def _recovery(behaviour: Behaviour, busy: float, interval_s: float) -> Between:
    """Detection, restart, and catching up with what came meanwhile and what is done again."""
    if busy >= 1:
        return Between(math.inf, math.inf, math.inf)
    bar, spare = BARS[Checked.RESTART], busy / (1 - busy)
    away = [d + r for d, r in zip(behaviour.detection_s, behaviour.restart_s, strict=True)]
    lag = max(0.5, fmean(behaviour.lag))  # a kill strikes half an interval after a line, on average
    back = lag * interval_s, max(1.0, *behaviour.lag) * interval_s + behaviour.checkpoint_s
    least, usual, most = min(away), fmean(away), max(away)
    return Between(
        usual + spare * (usual + back[0]),
        (1 - bar) * least * (1 + spare),
        (1 + bar) * (most + spare * (most + back[1])),
    )


def p99s(behaviour: Behaviour, latency: Latency) -> tuple[float, float] | None:
    """The 99th percentiles at the two intervals that were simulated; None if no row carries a time."""
    both = (behaviour.often, behaviour.seldom)
    known = [e.published_ms if latency is Latency.PUBLISHED else e.p99_ms for e in both]
    often_ms, seldom_ms = known
    return None if often_ms is None or seldom_ms is None else (often_ms, seldom_ms)


def _p99(
    behaviour: Behaviour, needs: Needs, interval_s: float, recovery_s: Between
) -> Between | None:
    known = p99s(behaviour, needs.latency)
    if known is None:
        return None
    published = needs.latency is Latency.PUBLISHED
    usual = (_published if published else _written)(behaviour, known, interval_s)
    found = _widened(usual, LATENCY_BAR)
    if recovery_s.high / needs.mtbf_s > RARE:  # so many records wait for a recovery that it is seen
        waits = recovery_s.times(1000)
        return Between(max(usual, waits.value), found.low, max(found.high, waits.high))
    return found


def _published(behaviour: Behaviour, p99s_ms: tuple[float, float], interval_s: float) -> float:
    """A straight line through both: rows wait for a line. None is published before it is written."""
    often, seldom = behaviour.often, behaviour.seldom
    often_ms, seldom_ms = p99s_ms
    slope = max(0.0, (seldom_ms - often_ms) / (seldom.interval_s - often.interval_s))
    return max(often.p99_ms or 0.0, seldom_ms + slope * (interval_s - seldom.interval_s))


def _written(behaviour: Behaviour, p99s_ms: tuple[float, float], interval_s: float) -> float:
    """Between the two intervals by their logarithms; beyond them checkpoints disturb no less, or more."""
    often, seldom = behaviour.often, behaviour.seldom
    often_ms, seldom_ms = p99s_ms
    if interval_s >= seldom.interval_s:
        return seldom_ms
    if interval_s <= often.interval_s:
        return often_ms * often.interval_s / interval_s
    share = math.log(interval_s / often.interval_s) / math.log(seldom.interval_s / often.interval_s)
    return float(often_ms ** (1 - share) * seldom_ms**share)


def _bytes(behaviour: Behaviour, interval_s: float) -> float:
    often, seldom = behaviour.often, behaviour.seldom
    each = (often.bytes_per_record - seldom.bytes_per_record) / (
        1 / often.interval_s - 1 / seldom.interval_s
    )
    return seldom.bytes_per_record + max(0.0, each) * (1 / interval_s - 1 / seldom.interval_s)


def _widened(value: float, bar: float) -> Between:
    return Between(value, value / (1 + bar), value * (1 + bar))
