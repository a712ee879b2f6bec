"""Draws how the operators of a dataflow are protected and placed, for protocols that heed that.

As faults are, policies and pools are drawn from the seed of a case: first whether anybody says anything at
all, then for each operator by itself. Whatever is drawn can be run. In some seeds the newest checkpoint of
a slot is damaged just before the slot dies, because each operator says how many older ones are kept.
"""

import random
from dataclasses import replace

from snapline.chaos.faults import At, Damage, Fault, Kill
from snapline.core.policy import Intake, Policy
from snapline.dataflow.graph import Dataflow


def with_drawn_policies(flow: Dataflow, seed: int) -> Dataflow:
    """The same dataflow, with its operators protected as the seed says."""
    rng = random.Random(f"{seed}:policies")
    changed = flow.with_policies({}, {})
    if rng.random() < 0.2:
        return changed  # nobody says anything: what has state is saved
    keen = rng.choice((Intake.DROP, Intake.WAIT, Intake.KEEP))  # most operators choose alike
    for name, node in flow.graph.nodes.items():
        if rng.random() < 0.8:
            policy = _draw(rng, keen, source=node.ingress is not None)
            changed.graph.nodes[name] = replace(node, policy=policy)
    return changed


def drawn_pools(flow: Dataflow, seed: int) -> dict[str, int]:
    """Slots of their own for one or two operators, in a third of all seeds; sources and sinks stay."""
    rng = random.Random(f"{seed}:pools")
    nodes = flow.graph.nodes.values()
    able = [node.name for node in nodes if node.ingress is None and not node.is_sink]
    if not able or rng.randrange(3):
        return {}
    chosen = rng.sample(able, min(len(able), rng.choice((1, 1, 2))))
    return {name: rng.choice((1, 2)) for name in chosen}


def with_drawn_damage(faults: tuple[Fault, ...], seed: int) -> tuple[Fault, ...]:
    """The same faults; in a sixth of all seeds a slot is damaged just before it is killed."""
    rng = random.Random(f"{seed}:damage")
    kills = [
        (f.slots[0], f.when.ms) for f in faults if isinstance(f, Kill) and isinstance(f.when, At)
    ]
    if not kills or rng.randrange(6):
        return faults
    slot, at_ms = max(kills, key=lambda kill: kill[1])
    return (*faults, Damage(slot, max(1, at_ms - rng.randrange(3))))


def _draw(rng: random.Random, keen: Intake, *, source: bool) -> Policy:
    intake = keen if rng.random() < 0.6 else rng.choice(tuple(Intake))
    if source:
        intake = Intake.DROP  # it has no input that could be kept
    saved = intake is Intake.KEEP or rng.choice((True, True, False))
    return Policy(
        saved=saved,
        every_ms=rng.choice((None, 80, 200, 600)) if saved else None,
        versions=rng.choice((1, 2, 2, 3)),
        intake=intake,
        buffer=rng.choice((1, 4, 30)) if intake is Intake.WAIT else 0,
    )
