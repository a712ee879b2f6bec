"""Draws how the operators of a dataflow are protected, for protocols that heed that.

As faults are, policies are drawn from the seed of a case: first whether anybody says anything at all, then
for each operator by itself. Whatever is drawn can be run.
"""

import random
from dataclasses import replace

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
