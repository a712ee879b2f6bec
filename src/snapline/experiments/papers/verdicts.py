"""Tests the claims of a figure by the runs that were made for it, and says what became of each.

The unit is a turn. What a claim does not name is averaged within each turn, by ratio, so that a turn gives
one ratio of the two sides; `statistics` gives the interval of the true ratio, and p: how likely so much in
favour of the claim would be if there were nothing in it. A claim has a direction before anything is
measured, so p is that of one side. The comparisons of a figure are corrected for their number (`holm`).

Ratios need numbers above 0. Where a value is 0, or a time was never reached, or a figure is compared with a
number, turns are only counted: those in which the claim is true, against a coin. A time that was never
reached is longer than any that was; a turn in which neither side reached it decides nothing, and is told.

holds                  the interval lies wholly on the claimed side, and p stays below ALPHA when corrected
indicated              it looks like that, with too few turns or too large a p to be sure
does not hold          the interval lies wholly on the other side; or a difference is claimed, and the
                       interval shows that there is none that matters (NONE_THAT_MATTERS)
cannot be tested here  and why: not measured, not run, a run not proved right, turns that contradict,
                       a difference within the noise floor, which might be none, and might be one

Simulated runs (`launcher = "simulated"`) have no noise, but a model may be wrong. What they say holds, or
does not, only where the model was validated and the difference is larger than its error; else it is
indicated, or not decided.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import fmean, median
from typing import Any, TypeAlias

from snapline.errors import UsageError
from snapline.experiments.comparison import SURE_PAIRS
from snapline.experiments.papers.catalogue import Paper, PaperMetric
from snapline.experiments.papers.claims import AllOf, Claim, ClaimedOrder, ClaimSide, orders
from snapline.experiments.papers.columns import Varied, chosen, paired_columns
from snapline.experiments.papers.readings import NotMeasured, reading
from snapline.experiments.statistics import ALPHA, Ratio, holm, paired, signs_p
from snapline.experiments.sweep_file import SIMULATED
from snapline.wording import plural

Result: TypeAlias = Mapping[str, Any]


NONE_THAT_MATTERS = 1.1
"""Where a paper claims a difference, an interval within this ratio of 1 shows that there is none."""


class Standing(StrEnum):
    """What became of a claim."""

    HOLDS = "holds"
    INDICATED = "indicated"
    FAILS = "does not hold"
    UNTESTED = "cannot be tested here"


_FROM_THE_WORST = (Standing.FAILS, Standing.UNTESTED, Standing.INDICATED, Standing.HOLDS)


_MARKS = ("not validated", "extrapolated", "validated")
"""How far the figures of simulated runs can be trusted, from the least on; see `scale.marks`."""


@dataclass(frozen=True, slots=True)
class OrderVerdict:
    """A comparison, and what the runs say about it."""

    order: ClaimedOrder
    standing: Standing
    why: str
    ours: str = ""  # what was measured, in words
    p: float | None = None  # one-sided, not corrected; None: it was not tested
    sure: bool = False  # there were turns enough for it to hold
    #: left over right, or the left side where the right is a number: the estimate, and its interval if
    #: there is one; None: it was not measured, or a time was never reached
    measured: tuple[float, float | None, float | None] | None = None


@dataclass(frozen=True, slots=True)
class ClaimVerdict:
    """A claim with all its comparisons."""

    text: str
    standing: Standing
    parts: tuple[OrderVerdict, ...]


@dataclass(frozen=True, slots=True)
class FigureRuns:
    """The runs that a figure is read from: all of them are proved right."""

    paper: Paper
    columns: Sequence[Varied]
    results: Sequence[Result]  # with `varied` as the figure calls it
    slots_are: str = ""  # how they were started

    def mark(self, order: ClaimedOrder) -> tuple[str, str, float | None] | None:
        """How far a simulated comparison can be trusted, why, and up to which error; None: it is measured.

        The least trusted one of its values decides. What was never compared with real runs has no mark.
        """
        if self.slots_are != SIMULATED:
            return None
        never = (_MARKS[0], "nobody has compared it with real runs", None)
        found = [
            tuple(result["marks"].get(path.partition(".")[0], never))
            for side in (order.left, order.right)
            if side.figure is not None
            for path in self.paper.metric(side.figure).paths
            for result in self.results
            if result["varied"] in chosen(self.columns, side.columns).columns
        ]
        return min(found, key=lambda each: _MARKS.index(each[0]), default=never)

    def values(self, metric: PaperMetric, column: Varied, again: bool = False) -> dict[int, float]:
        """The metric of a column, by turn. Raises NotMeasured if a run has none."""
        found = {
            int(result["turn"]): reading(result, metric)
            for result in self.results
            if result["varied"] == column and result["again"] == again
        }
        turns = sorted(found)[:1] if metric.once else sorted(found)
        return {turn: found[turn] for turn in turns}

    def floor(self, metric: PaperMetric) -> float:
        """The noise floor: how far the first column is from itself; 1 if that is not known."""
        first = self.columns[0]
        try:
            one, other = self.values(metric, first), self.values(metric, first, again=True)
        except NotMeasured:  # as the time of checkpoints, where the first column takes none
            return 1.0
        both = [(one[turn], other[turn]) for turn in one if turn in other]
        pairs = [(a, b) for a, b in both if _has_ratio(a) and _has_ratio(b)]
        return paired([a for a, _ in pairs], [b for _, b in pairs]).spread if pairs else 1.0


def judge_claims(claims: Mapping[str, Claim], runs: FigureRuns) -> list[ClaimVerdict]:
    """Test all claims of a figure, corrected for the number of their comparisons."""
    weighed = {order: _weighed(order, runs) for claim in claims.values() for order in orders(claim)}
    for order, each in weighed.items():
        if isinstance(each, Scales) and (mark := runs.mark(order)) is not None:
            weighed[order] = _modelled(each, *mark)
    scales = {order: each for order, each in weighed.items() if isinstance(each, Scales)}
    corrected = dict(zip(scales, holm([_p(each) for each in scales.values()]), strict=True))
    tested: dict[ClaimedOrder, OrderVerdict] = {}
    for order, each in weighed.items():
        if isinstance(each, Scales):
            each = _judged(each, corrected[order], len(scales))
        tested[order] = each
    return [
        ClaimVerdict(text, standing_of(claim, tested), tuple(tested[o] for o in orders(claim)))
        for text, claim in claims.items()
    ]


def standing_of(claim: Claim, tested: Mapping[ClaimedOrder, OrderVerdict]) -> Standing:
    """What became of a claim: its worst part, or where one part is enough, its best."""
    if isinstance(claim, ClaimedOrder):
        return tested[claim].standing
    parts = [standing_of(part, tested) for part in claim.parts]
    choose = min if isinstance(claim, AllOf) else max
    return choose(parts, key=_FROM_THE_WORST.index)


def worst(standings: Sequence[Standing]) -> Standing:
    """What becomes of several claims together: one that fails decides, then one that is not tested."""
    return min(standings, key=_FROM_THE_WORST.index, default=Standing.UNTESTED)


@dataclass(frozen=True, slots=True)
class Scales:
    """A comparison with what was measured on both sides, turn by turn; the right side with its factor."""

    order: ClaimedOrder
    left: tuple[float, ...]
    right: tuple[float, ...]
    floor: float | None  # a difference within it is none; None: no difference is claimed
    undecided: int  # turns in which neither side reached its time ...
    missing: int  # ... and those in which a side was not measured: neither is among the above

    @property
    def ratio(self) -> Ratio | None:
        """Left over right; None if turns can only be counted."""
        if self.order.right.figure is None or not all(map(_has_ratio, (*self.left, *self.right))):
            return None
        if self.order.right.factor == 1 and not self.order.sign.strict and self._ties:
            return None  # equal is enough, and equal numbers leave no doubt that a ratio could show
        return paired(self.right, self.left)

    @property
    def _ties(self) -> bool:
        return any(a == b for a, b in zip(self.left, self.right, strict=True))

    @property
    def agreeing(self) -> int:
        """The turns in which the claim is true."""
        sign = self.order.sign
        return sum(
            (a == b and not sign.strict) or (a > b if sign.upwards else a < b)
            for a, b in zip(self.left, self.right, strict=True)
        )


def _p(scales: Scales) -> float:
    """How likely at least so much in favour of the claim is if there is nothing in it."""
    if (ratio := scales.ratio) is None:
        return signs_p(scales.agreeing, len(scales.left))
    return ratio.p / 2 if _leans(ratio, scales.order) else 1 - ratio.p / 2


def _leans(ratio: Ratio, order: ClaimedOrder) -> bool:
    return ratio.estimate > 1 if order.sign.upwards else ratio.estimate < 1


def _weighed(order: ClaimedOrder, runs: FigureRuns) -> Scales | OrderVerdict:
    """Put what was measured on both sides into the scales; a verdict at once if that cannot be done."""
    try:
        left, right = _sides(order, runs)
        metric = runs.paper.metric(str(order.left.figure))
        strict = order.sign.strict and order.right.figure is not None and order.right.factor == 1
        floor = runs.floor(metric) if strict else None
    except (NotMeasured, UsageError) as error:
        return OrderVerdict(order, Standing.UNTESTED, str(error))
    turns = [turn for turn in left if turn in right]
    if not turns:
        return OrderVerdict(
            order, Standing.UNTESTED, "there is no turn in which both sides were measured"
        )
    decided = [turn for turn in turns if math.isfinite(left[turn]) or math.isfinite(right[turn])]
    if not decided:
        why = f"{order.left.figure} was never reached on either side before the runs were over"
        return OrderVerdict(order, Standing.UNTESTED, why)
    return Scales(
        order,
        tuple(left[turn] for turn in decided),
        tuple(right[turn] for turn in decided),
        floor,
        undecided=len(turns) - len(decided),
        missing=len({*left, *right}) - len(turns),
    )


def _sides(order: ClaimedOrder, runs: FigureRuns) -> tuple[dict[int, float], dict[int, float]]:
    """Both sides of a comparison by turn, each averaged over the columns that it does not tell apart."""
    left = chosen(runs.columns, order.left.columns)
    if order.right.figure is None:
        alone = _averaged([_of(order.left, column, runs) for column in left.columns], ratios=False)
        return alone, dict.fromkeys(alone, order.right.factor)
    pairs = paired_columns(left, chosen(runs.columns, order.right.columns))
    mine = [_of(order.left, column, runs) for column, _ in pairs]
    others = [_of(order.right, column, runs) for _, column in pairs]
    ratios = all(_has_ratio(value) for by_turn in (*mine, *others) for value in by_turn.values())
    return _averaged(mine, ratios=ratios), _averaged(others, ratios=ratios)


def _of(side: ClaimSide, column: Varied, runs: FigureRuns) -> dict[int, float]:
    found = runs.values(runs.paper.metric(str(side.figure)), column)
    return {turn: side.factor * value for turn, value in found.items()}


def _averaged(columns: Sequence[Mapping[int, float]], *, ratios: bool) -> dict[int, float]:
    """The mean of several columns in each turn that all of them have; of ratios, the geometric one."""
    turns = [turn for turn in columns[0] if all(turn in column for column in columns)]
    found = {turn: [column[turn] for column in columns] for turn in turns}
    if ratios:
        return {t: math.exp(fmean(map(math.log, values))) for t, values in found.items()}
    return {turn: fmean(values) for turn, values in found.items()}


def _has_ratio(value: float) -> bool:
    return math.isfinite(value) and value > 0


def _judged(scales: Scales, corrected: float, comparisons: int) -> OrderVerdict:
    """What may be said of a comparison whose p was corrected."""
    ratio, turns = scales.ratio, len(scales.left)
    sure = turns >= SURE_PAIRS
    found = OrderVerdict(
        scales.order, Standing.UNTESTED, "", _ours(scales), _p(scales), sure, _measured(scales)
    )
    leans = scales.agreeing * 2 > turns if ratio is None else _leans(ratio, scales.order)
    told = plural(turns, "turn")
    if ratio is not None and (floor := scales.floor) and 1 / floor <= ratio.estimate <= floor:
        if sure and ratio.spread <= NONE_THAT_MATTERS:
            least = f"{NONE_THAT_MATTERS - 1:.0%}".replace("%", " %")
            why = f"there is no difference of {least} or more, in {told}"
            return replace(found, standing=Standing.FAILS, why=why)
        noise = f"the difference lies within the noise floor of {floor - 1:.1%}"
        return replace(found, why=noise.replace("%", " %"))
    if not sure:
        few = f"{told}: it takes {SURE_PAIRS} to be sure"
        if not leans:
            return replace(found, why=f"{few}, and what was measured points the other way")
        return replace(found, standing=Standing.INDICATED, why=few)
    if _against(scales):
        return replace(found, standing=Standing.FAILS, why=f"the opposite is true, in {told}")
    if leans and corrected <= ALPHA and (ratio is None or ratio.excludes_one):
        return replace(found, standing=Standing.HOLDS, why=told)
    if leans:
        many = f", corrected for {plural(comparisons, 'comparison')}" if comparisons > 1 else ""
        why = f"{told}: p is {corrected:.2g}{many}, and not below {ALPHA:g}"
        return replace(found, standing=Standing.INDICATED, why=why)
    return replace(found, why=f"{told} do not decide it")


def _modelled(scales: Scales, mark: str, why: str, bar: float | None) -> OrderVerdict:
    """What may be said of simulated values. Turns have no noise that matters: the error of the model does.

    Only where it was validated can anything be sure, and only beyond the error that it may have.
    """
    found = OrderVerdict(
        scales.order, Standing.UNTESTED, "", _ours(scales), measured=_measured(scales)
    )
    told, true = f"simulated, {mark}: {why}", scales.agreeing * 2 > len(scales.left)
    sure = mark == _MARKS[-1] and bar is not None and _beyond(scales, bar)
    if sure:
        return replace(found, standing=Standing.HOLDS if true else Standing.FAILS, why=told)
    if true:
        return replace(found, standing=Standing.INDICATED, why=told)
    return replace(found, why=f"{told}; what was simulated points the other way")


def _beyond(scales: Scales, bar: float) -> bool:
    """Whether the two sides differ by more than the errors of both in every turn."""
    room = (1 + bar) ** 2
    return all(
        _has_ratio(a) and _has_ratio(b) and not 1 / room <= a / b <= room
        for a, b in zip(scales.left, scales.right, strict=True)
    )


def _against(scales: Scales) -> bool:
    """Whether the opposite of a comparison is sure."""
    if (ratio := scales.ratio) is None:
        turns = len(scales.left)
        return signs_p(turns - scales.agreeing, turns) <= ALPHA
    return ratio.excludes_one and not _leans(ratio, scales.order)


def _ours(scales: Scales) -> str:
    """What was measured, in words: both sides as medians, and their ratio with its interval."""
    order, factor = scales.order, scales.order.right.factor
    told = f"{_number(median(scales.left))}"
    if order.right.figure is not None:
        told += f" and {_number(median(scales.right) / factor)}"
        if (ratio := scales.ratio) is not None:
            told += f": {ratio.estimate * factor:.3g} times"
            if ratio.level > 0:
                told += f" ({ratio.low * factor:.3g} to {ratio.high * factor:.3g})"
    if scales.ratio is None:
        told += f"; true in {scales.agreeing} of {plural(len(scales.left), 'turn')}"
    if scales.undecided:
        told += f"; in {plural(scales.undecided, 'more turn')} neither was reached"
    if scales.missing:
        told += f"; {plural(scales.missing, 'turn')} not measured on both sides"
    return told


def _measured(scales: Scales) -> tuple[float, float | None, float | None] | None:
    """The ratio of both sides with its interval, or the median of the left where the right is a number."""
    ratio, factor = scales.ratio, scales.order.right.factor
    if scales.order.right.figure is None:
        known = median(scales.left)
        return (known, min(scales.left), max(scales.left)) if math.isfinite(known) else None
    if ratio is None:
        left, right = median(scales.left), median(scales.right) / factor
        return (left / right, None, None) if _has_ratio(left) and _has_ratio(right) else None
    if ratio.level <= 0:
        return ratio.estimate * factor, None, None
    return ratio.estimate * factor, ratio.low * factor, ratio.high * factor


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "never"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
