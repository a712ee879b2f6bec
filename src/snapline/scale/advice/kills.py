"""Kills slots of a dataflow in the simulator, with some of its operators saved, and measures the deviation.

Every choice of operators is tried under the same kills, with the same random numbers for each connection
and each process that calls the store (common random numbers): two trials differ by what was saved, and by
the time that this takes. Operators of one pool die together. A kill takes nothing from the operators of
other pools, so only what is saved in the pool that is struck matters.
"""

import random
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from snapline.core.policy import Intake
from snapline.dataflow.deploy import deploy
from snapline.dataflow.graph import Dataflow
from snapline.dataflow.pools import pool_slots
from snapline.errors import UsageError
from snapline.ids import Millis, SlotId, operator_of
from snapline.loss.answers import right_answer
from snapline.metrics.figures import Figures
from snapline.rundir.program import KnownAnswer, find_program, with_pool_sizes
from snapline.rundir.spec import Spec
from snapline.scale.predict import PATIENCE_MS, deviation_from, whole, world_of
from snapline.scale.profile import Profile

Floats: TypeAlias = npt.NDArray[np.float64]

KILLED_WITHIN: Final = (0.1, 0.7)
"""The part of a run in which slots are killed: after it has begun to work, and with time to see the end."""

Teller: TypeAlias = Callable[[str], None]
"""Is told what is simulated next."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An operator that keeps state, and might be saved."""

    operator: str
    pool: str
    slots: tuple[SlotId, ...]


@dataclass(frozen=True, slots=True)
class SavingCost:
    """What it costs to save an operator, without any failure."""

    blocked: float  # share of the time of its slots in which a capture keeps them from all else
    bytes_per_s: float  # of checkpoints


def _candidates(flow: Dataflow, spec: Spec) -> list[Candidate]:
    """The operators of a dataflow that keep state. Raises UsageError if there is none."""
    graph, sizes = flow.graph, dict(spec.pools)
    plans, pools = deploy(flow, spec.slots, pools=sizes).plans, pool_slots(spec.slots, sizes)
    stateful = {operator_of(task) for task, plan in plans.items() if plan.stateful}
    found = [
        Candidate(name, graph.nodes[name].pool, pools[graph.nodes[name].pool])
        for name in graph.order()
        if name in stateful and graph.nodes[name].ingress is None
    ]
    if not found:
        raise UsageError(f"no operator of {graph.name} keeps state: there is nothing to save")
    return found


class KillTrials:
    """Simulated runs of one dataflow; each is made once.

    `spec` has protocol, input and interval; what it says about saving is ignored. Each pool is killed
    `kills` times, and a killed slot is away for a time between the two of `away_ms`.
    """

    def __init__(
        self,
        spec: Spec,
        profile: Profile,
        known: KnownAnswer,
        kills: int,
        away_ms: tuple[Millis, Millis],
        tell: Teller = lambda what: None,
    ) -> None:
        program = find_program(replace(spec, save=(), inputs=()))
        self.spec: Final = with_pool_sizes(replace(spec, save=(), inputs=()), program.flow)
        self.kills: Final = kills
        self.made = 0  #: runs so far
        self._profile: Final = profile
        self._answer: Final = known.answer
        self._right: Final = right_answer(known.answer, program.flow, spec.slots, known.right)
        self._away_ms: Final = away_ms
        self._tell: Final = tell
        self._seen: Final[dict[tuple[str, frozenset[str]], Floats]] = {}
        self.candidates: Final = _candidates(program.flow, self.spec)
        nodes = program.flow.graph.nodes
        policies = {each.operator: nodes[each.operator].policy for each in self.candidates}
        #: whose input the dataflow wants to be kept, which is only possible for what is saved
        self._keeping: Final = [n for n, p in policies.items() if p and p.intake is Intake.KEEP]

    @property
    def most(self) -> int:
        """How many runs there are at most, if operators are chosen until all are."""
        sizes = Counter(each.pool for each in self.candidates)
        choices = sum(1 + size * (size + 1) // 2 for size in sizes.values())
        return len(self.candidates) + self.kills * choices

    def saving(self, saved: Collection[str]) -> Spec:
        """The run in which only these operators are saved."""
        every = tuple((c.operator, "yes" if c.operator in saved else "no") for c in self.candidates)
        inputs = tuple((name, "drop") for name in self._keeping if name not in saved)
        return replace(self.spec, save=every, inputs=inputs)

    def kills_of(self, pool: str) -> list[str]:
        """The kills of a pool: always the same ones."""
        dice = random.Random(f"{self.spec.seed}:{pool}:protect")
        (slots,) = {each.slots for each in self.candidates if each.pool == pool}
        first, last = (int(share * self.spec.duration_ms) for share in KILLED_WITHIN)
        return [
            f"kill slot={dice.choice(slots)} at={dice.randint(first, last)}ms"
            f" for={dice.randint(*self._away_ms)}ms"
            for _ in range(self.kills)
        ]

    def scores(self, saved: Collection[str], pool: str) -> Floats:
        """How far the answer is off under each kill of a pool, if these operators are saved."""
        here = frozenset(c.operator for c in self.candidates if c.pool == pool) & frozenset(saved)
        if (pool, here) not in self._seen:
            spec = self.saving(here)
            found = [self._score(replace(spec, faults=kill)) for kill in self.kills_of(pool)]
            self._seen[pool, here] = np.array(found, np.float64)
        return self._seen[pool, here]

    def _score(self, spec: Spec) -> float:
        self.made += 1
        saved = ", ".join(name for name, how in spec.save if how == "yes") or "nothing"
        self._tell(f"{spec.faults}, {saved} saved")
        world, injector = world_of(spec, self._profile, None, 1)
        world.run((spec.duration_ms + PATIENCE_MS) * 1000)
        if not world.finished or world.problem is not None:
            why = world.problem or "it still goes on"
            raise UsageError(f"a simulated run under '{spec.faults}' came to no end: {why}")
        return deviation_from(self._right, self._answer, world, injector).overall

    def cost(self, candidate: Candidate) -> SavingCost:
        """What saving an operator costs, by itself."""
        self.made += 1
        self._tell(f"no kill, {candidate.operator} saved")
        spec = self.saving({candidate.operator})
        world, _ = world_of(spec, self._profile, None, 1)
        world.run((spec.duration_ms + PATIENCE_MS) * 1000)
        figures = whole(world.figures(), 1)
        seconds = spec.duration_ms / 1000
        share = _blocked_ms(figures) / (spec.duration_ms * len(candidate.slots))
        return SavingCost(share, figures.checkpoints.bytes / seconds)

    def costs(self) -> Mapping[str, SavingCost]:
        """What saving each operator costs."""
        return {each.operator: self.cost(each) for each in self.candidates}


def _blocked_ms(figures: Figures) -> float:
    phases = figures.checkpoint_phases_ms
    return 0.0 if phases is None else phases.blocked.mean * figures.checkpoints.stored
