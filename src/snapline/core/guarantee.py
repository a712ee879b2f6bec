"""What a job promises about every record, whatever fails."""

from enum import Enum


class Guarantee(Enum):
    """How often each record counts in the published output, whatever fails."""

    NOTHING = "nothing"
    AT_MOST_ONCE = "at-most-once"
    AT_LEAST_ONCE = "at-least-once"
    EXACTLY_ONCE = "exactly-once"
