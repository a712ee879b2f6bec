"""Which operators to save within a budget: the next best one, again and again, while one is affordable.

The benefit of saving an operator is by how much less the answer is off after a kill, on average over the
same kills with and without it. Every slot is taken to fail equally often, so a pool counts as many times as
it has slots; pools without state are left out. Kills are few, so every benefit has an interval, from the
means of all sets of kills (`experiments/statistics.py`). It assumes only that a benefit is as often above
the true mean as below it, by as much. An operator is chosen only if its whole interval is above zero; where
two cannot be told apart, that is said.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from snapline.experiments.statistics import between, sets_of
from snapline.scale.advice.kills import Candidate, Floats, KillTrials, SavingCost

EXACT_MAX: Final = 12
"""Up to so many kills all sets of them are looked at; of more kills, as many sets as that, at random."""

CONFIDENCE: Final = 0.9
"""How often the true mean lies in an interval, if the kills that were tried are typical."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What saving may cost at most; more than nothing."""

    blocked: float  # share of the time of slots
    bytes_per_s: float | None = None  # of checkpoints; None: any number

    def share(self, cost: SavingCost) -> float:
        """How much of the budget something takes: of what is scarcer."""
        volume = 0.0 if self.bytes_per_s is None else cost.bytes_per_s / self.bytes_per_s
        return max(cost.blocked / self.blocked, volume)


class Advised(StrEnum):
    """What became of an operator."""

    SAVE = "save"
    TOO_DEAR = "too dear"
    NO_BENEFIT = "no benefit"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean, and the interval in which the true one lies nine times in ten."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Weighed:
    """An operator, what saving it brings and costs, and what is advised."""

    operator: str
    pool: str
    advised: Advised
    benefit: Estimate  # drop in deviation, over failures of all slots, beside those chosen before
    cost: SavingCost
    share: float  # of the budget
    #: operators that might have been the better choice at this point: the kills do not tell
    rivals: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProtectAdvice:
    """Which operators to save: those chosen, in their order, then all others by benefit for their cost."""

    operators: tuple[Weighed, ...]
    unsaved: Estimate  # deviation after a failure if nothing is saved
    saved: Estimate  # deviation after a failure if this advice is taken
    cost: SavingCost  # of all that is to be saved: the busiest pool, and the bytes of all
    runs: int  # that were simulated

    @property
    def chosen(self) -> tuple[str, ...]:
        """The operators to save."""
        return tuple(each.operator for each in self.operators if each.advised is Advised.SAVE)


def advise_protect(trials: KillTrials, budget: Budget) -> ProtectAdvice:
    """Choose operators to save, the one with the most benefit for its cost first."""
    weigher = _Weigher(trials, budget, trials.costs())
    saved: list[str] = []
    chosen: list[Weighed] = []
    while True:
        left = [each for each in trials.candidates if each.operator not in saved]
        options = [weigher.option(each, saved) for each in left]
        best = max((o for o in options if o.advised is Advised.SAVE), key=_ratio, default=None)
        if best is None:
            break
        rivals = tuple(o.operator for o in options if weigher.near(best, o, saved))
        chosen.append(_with(best, rivals))
        saved.append(best.operator)
    return ProtectAdvice(
        (*chosen, *sorted(options, key=_ratio, reverse=True)),
        weigher.deviation(()),
        weigher.deviation(saved),
        weigher.cost_of(saved),
        trials.made,
    )


def _ratio(option: Weighed) -> float:
    return option.benefit.mean / max(option.share, 1e-9)


def _with(option: Weighed, rivals: tuple[str, ...]) -> Weighed:
    return Weighed(
        option.operator,
        option.pool,
        option.advised,
        option.benefit,
        option.cost,
        option.share,
        rivals,
    )


class _Weigher:
    """Weighs operators against each other, with the same sets of kills for all of a pool."""

    def __init__(self, trials: KillTrials, budget: Budget, costs: Mapping[str, SavingCost]) -> None:
        self._trials: Final = trials
        self._budget: Final = budget
        self._costs: Final = costs
        self._pools: Final = {each.pool: len(each.slots) for each in trials.candidates}
        self._slots: Final = sum(self._pools.values())
        dice, sets = np.random.default_rng(trials.spec.seed), sets_of(trials.kills, EXACT_MAX)
        shares = sets / sets.sum(axis=1, keepdims=True)
        #: of each pool, by how much each kill counts in each set; pools are paired at random
        self._shares: Final = {pool: dice.permutation(shares) for pool in self._pools}

    def _means(self, values: Floats, pool: str) -> Floats:
        """The mean of each set of kills, weighed by how many of all slots the pool has."""
        means: Floats = self._shares[pool] @ values
        return means * self._pools[pool] / self._slots

    def _gains(self, candidate: Candidate, saved: Sequence[str]) -> Floats:
        without = self._trials.scores(saved, candidate.pool)
        return without - self._trials.scores([*saved, candidate.operator], candidate.pool)

    def option(self, candidate: Candidate, saved: Sequence[str]) -> Weighed:
        """What saving an operator brings beside those that are saved, and whether it is affordable."""
        gains, cost = self._gains(candidate, saved), self._costs[candidate.operator]
        weight = self._pools[candidate.pool] / self._slots
        benefit = _estimate(float(gains.mean() * weight), self._means(gains, candidate.pool))
        whole = self._budget.share(self.cost_of([*saved, candidate.operator]))
        if benefit.low > 0:
            advised = Advised.SAVE if whole <= 1 else Advised.TOO_DEAR
        else:
            none = benefit.high <= 0 or not gains.any()
            advised = Advised.NO_BENEFIT if none else Advised.CANNOT_TELL
        share = self._budget.share(cost)
        return Weighed(candidate.operator, candidate.pool, advised, benefit, cost, share)

    def near(self, best: Weighed, other: Weighed, saved: Sequence[str]) -> bool:
        """Whether another affordable operator might have been the better choice."""
        if other.advised is not Advised.SAVE or other.operator == best.operator:
            return False
        by_name = {each.operator: each for each in self._trials.candidates}
        worth = [
            self._means(self._gains(by_name[o.operator], saved), o.pool) / max(o.share, 1e-9)
            for o in (best, other)
        ]
        low, _, _ = between(worth[0] - worth[1], 1 - CONFIDENCE)
        return low <= 0

    def deviation(self, saved: Sequence[str]) -> Estimate:
        """How far the answer is off after the failure of a slot that is drawn from those of all pools."""
        known = {pool: self._trials.scores(saved, pool) for pool in self._pools}
        slots = self._slots
        mean = sum(float(v.mean()) * self._pools[pool] / slots for pool, v in known.items())
        means = np.sum([self._means(v, pool) for pool, v in known.items()], axis=0)
        return _estimate(mean, means)

    def cost_of(self, saved: Sequence[str]) -> SavingCost:
        """What saving several operators costs: the time of the pool that pays most, and all bytes."""
        blocked = dict.fromkeys(self._pools, 0.0)
        for each in self._trials.candidates:
            if each.operator in saved:
                blocked[each.pool] += self._costs[each.operator].blocked
        volume = sum(self._costs[name].bytes_per_s for name in saved)
        return SavingCost(max(blocked.values()), volume)


def _estimate(mean: float, means: Floats) -> Estimate:
    low, high, _ = between(means, 1 - CONFIDENCE)
    return Estimate(mean, low, high)
