"""What a workload names as its answer: the numbers in its output by which people judge it.

After a failure that costs something, rows are missing, come twice, or have other numbers than they should.
How far off they are (`metrics.deviation`) can be said of numbers that belong to rows which can be told
apart, whichever run put them out. A workload says which these are.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AnswerColumns:
    """The numbers in the output of a dataflow that are its answer."""

    sink: str
    identity: tuple[
        str, ...
    ]  # columns of numbers: rows that agree in them answer the same question
    columns: tuple[str, ...]  # the numbers that are the answer
    time: str = "time"  # the column that says when a row was due, in ms of the run
    #: whether rows of one identity replace each other, as running counts do: the last one is the answer
    replaces: bool = False
