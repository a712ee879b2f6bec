"""What a job promises about every record, whatever fails."""

from enum import Enum


class Guarantee(Enum):
    """How often each record counts in the published output, whatever fails."""

    NOTHING = "nothing"
    #: what was lost is declared, lies within a bound that is known before, and all else counts once
    BOUNDED_LOSS = "bounded-loss"
    AT_MOST_ONCE = "at-most-once"
    AT_LEAST_ONCE = "at-least-once"
    EXACTLY_ONCE = "exactly-once"
