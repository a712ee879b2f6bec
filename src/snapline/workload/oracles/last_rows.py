"""Judges the aggregates of sliding windows by rows: is there an order of arrival that explains them?

The rows of a window are in the order of arrival. Of a key whose records come from one partition that order
is known, and so is every result. If they come from several, each partition keeps its order, but nobody
knows how they were merged. The results then have to be explained by some merge: it is looked for record by
record, and a beginning that some result contradicts is given up. So the answer is exact, unless the search
takes more steps than it may; that is an answer of its own, and nobody is accused or acquitted by it.

Every result names the record with which it came. Fractions agree if they differ by a billionth at most.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isclose
from typing import Any, Final, TypeAlias

import numpy as np

from snapline.batch import Batch
from snapline.workload.common.generated import Ints
from snapline.workload.oracles.codes import Codes
from snapline.workload.oracles.verdict import LIMIT, Problems, rows_of

CLOSE: Final = 1e-9
STEPS: Final = 200_000
"""How many records may be tried as the next one of a key."""

Aggregates: TypeAlias = Mapping[str, tuple[str, str]]
"""Of each column of the results what is computed, and of which column of the records."""


@dataclass(frozen=True, slots=True)
class RowWindows:
    """What is computed: the windows of these keys have so many rows."""

    key: Sequence[str]
    rows: int
    results: Aggregates


def judge_last_rows(
    findings: Problems,
    shape: RowWindows,
    records: Batch,
    found: Batch | None,
    describe: Callable[[int], str],
    steps: int = STEPS,
) -> int:
    """Compare results with records; return for how many keys no answer was found in so many steps.

    Both have the column `id`, and records also `partition`; those of a partition are in their order.
    """
    columns = ("id", *shape.results)
    came: dict[int, tuple[Any, ...]] = {}
    for record, *values in rows_of(found, *columns):
        if record in came:
            findings.excess("duplicate", describe(record), "it came out more than once")
        came[record] = tuple(values)
    ids = records["id"].tolist()
    for record in sorted(came.keys() - {*ids})[:LIMIT]:
        findings.excess("invented", describe(record), "there is no such record")
    gone = [record for record in ids if record not in came]
    for record in gone[:LIMIT]:
        findings.lack("missing", describe(record), "it should have a result")
    undecided = 0
    for lanes in _lanes(shape, records):
        if any(record not in came for lane in lanes for record, _ in lane):
            continue  # which is reported already
        merge = Merge(lanes, shape, came, steps)
        if merge.found is None:
            undecided += 1
        elif not merge.found:
            because = f"it came out as {came[merge.stuck]}, which no order of arrival explains"
            findings.instead(describe(merge.stuck), because)
    return undecided


Lane: TypeAlias = Sequence[tuple[int, Mapping[str, Any]]]
"""The records of a key in a partition: the id and the values of each, in their order."""


def _lanes(shape: RowWindows, records: Batch) -> list[list[Lane]]:
    """Of each key its records, partition by partition."""
    keys = Codes([records[name] for name in shape.key]).own if shape.key else _zeros(records)
    used = sorted({column for _, column in shape.results.values()} - {"id"})
    rows = rows_of(records, "id", *used)
    lanes: dict[int, dict[int, list[tuple[int, Mapping[str, Any]]]]] = {}
    for key, partition, row in zip(keys.tolist(), records["partition"].tolist(), rows, strict=True):
        values = {"id": row[0], **dict(zip(used, row[1:], strict=True))}
        lanes.setdefault(key, {}).setdefault(partition, []).append((row[0], values))
    return [list(by_partition.values()) for by_partition in lanes.values()]


def _zeros(records: Batch) -> Ints:
    return np.zeros(len(records), np.int64)


_State: TypeAlias = tuple[tuple[int, ...], tuple[tuple[int, int], ...]]
"""How many records of each lane have come, and the lanes and places of those in the window."""


class Merge:
    """The search for a merge of the records of a key that explains all its results."""

    def __init__(
        self,
        lanes: Sequence[Lane],
        shape: RowWindows,
        came: Mapping[int, tuple[Any, ...]],
        steps: int,
    ) -> None:
        self._lanes: Final = lanes
        self._shape: Final = shape
        self._came: Final = came
        self._deepest = -1
        #: a record whose result cannot be explained, if none is found: the furthest that was reached
        self.stuck = lanes[0][0][0]
        #: whether there is one; None: nobody knows
        self.found: Final = self._search(steps)

    def _search(self, steps: int) -> bool | None:
        start: _State = (tuple(0 for _ in self._lanes), ())
        seen, waiting = {start}, [start]
        total = sum(map(len, self._lanes))
        while waiting:
            places, window = waiting.pop()
            if sum(places) == total:
                return True
            for lane, place in enumerate(places):
                if place == len(self._lanes[lane]):
                    continue
                steps -= 1
                if steps < 0:
                    return None
                # What a window holds is told by who is in it: where each of them stands.
                held = (*window, (lane, place))[-self._shape.rows :]
                if self._explains(held, sum(places)):
                    after = (*places[:lane], place + 1, *places[lane + 1 :]), held
                    if after not in seen:
                        seen.add(after)
                        waiting.append(after)
        return False

    def _explains(self, held: tuple[tuple[int, int], ...], depth: int) -> bool:
        """Whether the last record of a window came out with what is computed of the window."""
        rows = [self._lanes[lane][place][1] for lane, place in held]
        record = rows[-1]["id"]
        for (kind, column), value in zip(
            self._shape.results.values(), self._came[record], strict=True
        ):
            right = _computed(kind, [row[column] for row in rows])
            if not isclose(value, right, rel_tol=CLOSE):
                if depth > self._deepest:
                    self._deepest, self.stuck = depth, record
                return False
        return True


def _computed(kind: str, values: Sequence[Any]) -> Any:
    match kind:
        case "count":
            return len(values)
        case "sum":
            return sum(values)
        case "mean":
            return sum(values) / len(values)
        case "min":
            return min(values)
        case "max":
            return max(values)
        case "first":
            return values[0]
    assert kind == "last"
    return values[-1]
