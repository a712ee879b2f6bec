"""How far back a ledger is kept, and why a number that was collected is never won a second time.

Nothing but the newest decisions is ever needed: those since the last whole one, and those that tell which
lines are kept. Each decision names an *anchor*: from that number on all decisions are kept, and a gap above
it is damage. Below it all are deleted, but for *signposts*. The anchor is part of a decision, so it is
written by one conditional write with it, never falls, and is durable BEFORE anything is deleted by it.

The hazard. A deleted number is free again. A driver that stood still while others decided, and collected,
would win it, and believe that it still runs the run.

Signposts. The leading bits of a number, with zeros behind them, are its signposts: those of 13 (1101) are
8, 12 and 13. A decision is deleted only if it is no signpost of the anchor, and no power of two. So there
are a few dozen decisions below the anchor, however long the ledger is.

S1  If s is a signpost of n, and s <= m <= n, then s is a signpost of m: m has the same leading bits. So
    every signpost of the last decision n lies above the anchor, or is one of the anchor: it is there.
S2  A number that was deleted is a signpost of no later anchor, by S1. So whoever deletes by an old anchor,
    however late, deletes nothing that anybody will look at; and what a driver that stood still writes there
    changes nothing for readers.
S3  The end n is found by probing: the powers of two, and then the next bit after each one that was found.
    All numbers that are probed and are at most n are powers of two or signposts of n, so they are there.
S4  Let k < n, and j the highest bit in which they differ. Then k cut at bit j and counted up there is a
    signpost of n: one of the numbers of `later_numbers(k)`. While n grows, j never falls. So whoever
    looks at them in their order finds one, whatever is decided and deleted meanwhile: each that is gone
    when it is looked at was replaced by one that is still to come. Of those with more bits than k the
    lowest is enough: it is a power of two, so if n has more bits it is there, for ever.

The rule. A driver that has won number k THEN looks at `later_numbers(k)`, and is deposed if one is there.
If k had been collected, a decision behind it was durable before k was free, so by S4 it finds one. If it
finds none, nobody ever had k before it: it acts on a decision of its own. What it still does when it is
replaced after that is harmless as ever: it publishes what the ledger names, and deletes what is garbage.
"""

from collections.abc import Iterator
from dataclasses import dataclass

NUMBER_BITS = 24
"""No ledger has a decision whose number needs more bits."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """From which decision on a ledger is kept."""

    number: int = 1  # of a whole decision, from which on all are kept
    digest: str = ""  # of that decision; empty: it is the first one, and nothing was collected
    cleared: int = 1  # the anchor before: below it all was deleted before this one was raised

    @property
    def doomed(self) -> list[int]:
        """The decisions that are to be deleted once this anchor is durable, in any order, by anybody."""
        numbers = (*signposts(self.cleared), *range(self.cleared, self.number))
        kept = set(signposts(self.number))
        return [n for n in dict.fromkeys(numbers) if n not in kept and n & (n - 1)]


FIRST = Anchor()
"""The anchor of a ledger of which nothing was collected."""


def signposts(number: int) -> list[int]:
    """The numbers at which a search that finds this number looks on its way: its leading bits."""
    cut = (number >> bit << bit for bit in reversed(range(number.bit_length())))
    return list(dict.fromkeys(cut))


def later_numbers(number: int) -> Iterator[int]:
    """Numbers of which at least one is there if any decision later than this one was made (S4)."""
    last = number
    for bit in range(NUMBER_BITS + 1):
        later = ((number >> bit) + 1) << bit
        if later != last:
            yield later
        last = later
