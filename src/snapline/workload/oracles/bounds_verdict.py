"""Compares aggregates with the right ones where records may be lost, or repeated: with bounds, not values.

A count or a maximum of fewer records is never larger than the right one, and of more never smaller.
"""

from collections.abc import Callable, Sequence

import numpy as np

from snapline.batch import Array, Batch
from snapline.workload.common.generated import Ints
from snapline.workload.oracles.codes import UNKNOWN, Codes
from snapline.workload.oracles.verdict import LIMIT, Problems, rows_of


def judge_at_most(
    findings: Problems,
    right: Batch,
    found: Batch | None,
    key: Sequence[str],
    value: str,
    describe: Callable[..., str],
    exact: Sequence[str] = (),
) -> None:
    """Report rows that came out twice, that nothing gives, or whose value is larger than the right one.

    `right` has every key once; the columns `exact` have to be as there.
    """
    if found is None or not len(found):
        return
    codes = Codes([right[name] for name in key])
    order = np.argsort(codes.own)
    at = codes.of([found[name] for name in key])
    known = np.flatnonzero(at != UNKNOWN)
    rows = order[np.searchsorted(codes.own[order], at[known])]
    wrong = found[value][known] > right[value][rows]
    for name in exact:
        wrong |= found[name][known] != right[name][rows]
    for n in np.flatnonzero(at == UNKNOWN)[:LIMIT].tolist():
        findings.excess("invented", _named(found, n, key, describe), "nothing gives it")
    for n, r in zip(known[wrong][:LIMIT].tolist(), rows[wrong][:LIMIT].tolist(), strict=True):
        came, should = (
            rows_of(b.slice(i, i + 1), value, *exact)[0] for b, i in ((found, n), (right, r))
        )
        because = f"it came out as {came}; right is {should}"
        findings.excess("wrong", _named(found, n, key, describe), because)
    _, first, copies = np.unique(at[known], return_index=True, return_counts=True)
    for n, times in zip(known[first].tolist(), copies.tolist(), strict=True):
        if times > 1:
            findings.excess(
                "duplicate", _named(found, n, key, describe), f"it came out {times} times"
            )


def judge_at_least(
    findings: Problems,
    best: Batch,
    found: Batch | None,
    key: Sequence[str],
    value: str,
    describe: Callable[..., str],
) -> None:
    """Report the best rows of groups that did not come out with their value, or a larger one.

    The first column of the key is the group. One of its best rows may be left out if another row came out
    with a value that is even larger.
    """
    if found is None or not len(found):
        found = Batch(dict.fromkeys((*key, value), np.zeros(0, np.int64)), 0)
    groups, keys = Codes([best[key[0]]]), Codes([best[name] for name in key])
    most = _largest(groups, [found[key[0]]], found[value])
    came = _largest(keys, [found[name] for name in key], found[value])
    lacks = (came < best[value]) & (most <= best[value])
    for n in np.flatnonzero(lacks)[:LIMIT].tolist():
        should = best[value][n].item()
        findings.lack(
            "missing", _named(best, n, key, describe), f"it should have come out with {should}"
        )


def _largest(codes: Codes, columns: Sequence[Array], values: Array) -> Ints:
    """For each known row the largest value that came out with its code; the least number if none did."""
    least = np.iinfo(np.int64).min
    distinct, at = np.unique(codes.own, return_inverse=True)
    largest = np.full(len(distinct), least)
    found = codes.of(columns)
    known = found != UNKNOWN
    np.maximum.at(largest, np.searchsorted(distinct, found[known]), values[known])
    return largest[at]


def _named(rows: Batch, n: int, key: Sequence[str], describe: Callable[..., str]) -> str:
    return describe(*rows_of(rows.slice(n, n + 1), *key)[0])
