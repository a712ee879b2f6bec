"""Compares lots with the right ones where losses were declared: what no loss touched has to be right."""

from collections.abc import Callable

import numpy as np

from snapline.batch import Batch
from snapline.workload.fab.stays import LotLosses
from snapline.workload.oracles.verdict import LIMIT, Problems, rows_of


def judge_lossy_lots(
    findings: Problems,
    right: Batch,
    found: Batch | None,
    losses: LotLosses,
    describe: Callable[[int], str],
) -> None:
    """Report what no declared loss explains; lots are numbered from 0 without gaps."""
    count = len(right)
    if found is None or not len(found):
        found = Batch(dict.fromkeys(right.columns, np.zeros(0, np.int64)), 0)
    known = (found["lot"] >= 0) & (found["lot"] < count)
    for (lot,) in rows_of(found.take(~known).slice(0, LIMIT), "lot"):
        findings.excess("invented", describe(lot), "there is no such lot")
    found = found.take(known)
    lot = found["lot"]
    copies = np.bincount(lot, minlength=count)
    losses.excuses.account(
        lost=int(np.count_nonzero((copies == 0) & losses.gone)),
        of=count,
        free=int(np.count_nonzero(losses.unknown[lot])),
        again=int((copies - 1)[losses.again & (copies > 1)].sum()),
    )
    for number in np.flatnonzero((copies == 0) & ~losses.gone)[:LIMIT].tolist():
        because = "it should have come out, and no declared loss touched it"
        findings.lack("missing", describe(number), because)
    for number in np.flatnonzero((copies > 1) & ~losses.again)[:LIMIT].tolist():
        because = f"it came out {copies[number]} times"
        findings.excess("duplicate", describe(number), because)
    _judge_values(findings, right.take(lot), found, losses, describe)


def _judge_values(
    findings: Problems,
    right: Batch,
    found: Batch,
    losses: LotLosses,
    describe: Callable[[int], str],
) -> None:
    """Compare what came out with the same rows as they should be."""
    lot = found["lot"]
    whole, sure = ~losses.fewer[lot], ~losses.unknown[lot]
    wrong = (found["time"] != right["time"]) | (found["wafers"] > right["wafers"])
    wrong |= whole & (found["wafers"] != right["wafers"])
    wrong |= whole & (found["actual"] != right["actual"])
    wrong |= sure & (found["predicted"] != right["predicted"])
    names = ("wafers", "predicted", "actual", "time")
    for n in np.flatnonzero(wrong)[:LIMIT].tolist():
        came, should = (rows_of(rows.slice(n, n + 1), *names)[0] for rows in (found, right))
        because = f"it came out as {came}; right is {should}, and no declared loss explains that"
        findings.excess("wrong", describe(int(lot[n])), because)
