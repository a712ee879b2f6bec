"""How the operators of a graph are protected, and which protection cannot be.

What is checked here holds under every protocol that heeds policies. Every complaint names the operator, or
the edge, and says what to do.
"""

from collections.abc import Mapping
from dataclasses import replace

from snapline.arguments import nearest
from snapline.core.guarantee import Guarantee
from snapline.core.policy import DEFAULT_POLICY, Intake, Policy, Stale
from snapline.core.protocol import CheckpointProtocol
from snapline.dataflow.chain import Chain
from snapline.dataflow.logical import Edge, Graph, Node
from snapline.dataflow.operators.barrier import Barrier
from snapline.dataflow.operators.operator import TENTATIVE, Operator
from snapline.dataflow.usage.policies import Saying, added, saying_of, settled
from snapline.errors import GraphError


def protected(node: Node, said: Saying) -> Node:
    """The operator, with another saying about its protection. Raises GraphError if they contradict."""
    _refuse_source(node, said)
    policy = added(node.name, node.policy, node.said, said)
    return replace(node, policy=policy, said=node.said | said.keys())


def overruled(graph: Graph, save: Mapping[str, str], inputs: Mapping[str, str]) -> dict[str, Node]:
    """The operators of which these texts say something, protected as they say and not as the graph says.

    Raises GraphError if there is no such operator, or if an operator cannot be protected so.
    """
    changed: dict[str, Node] = {}
    for name in {**save, **inputs}:
        if name not in graph.nodes:
            hint = nearest(name, graph.nodes)
            raise GraphError(f"{graph.name} has no operator {name!r} to protect; {hint}")
        said = saying_of(save.get(name), inputs.get(name))
        node = graph.nodes[name]
        _refuse_source(node, said)
        policy = settled(name, replace(node.policy or DEFAULT_POLICY, **said))
        changed[name] = replace(node, policy=policy, said=node.said | said.keys())
    return changed


def _refuse_source(node: Node, said: Saying) -> None:
    if node.ingress is not None and "intake" in said:
        raise GraphError(
            f"'{node.name}' is a source, and has no inputs that could drop, wait or be kept: say it of the "
            "operators behind it"
        )


def is_stateful(operator: Operator) -> bool:
    """Whether an operator, or one of those that are chained in it, has anything to save."""
    if isinstance(operator, Chain):
        return any(is_stateful(member) for _, member in operator.members)
    return bool(operator.saved) or type(operator).capture is not Operator.capture


def settle(policy: Policy | None, *, stateful: bool) -> Policy:
    """The policy of a task: what nobody says about saving it is decided by whether it has state."""
    policy = policy or DEFAULT_POLICY
    return policy if policy.saved is not None else replace(policy, saved=stateful)


def check_policies(graph: Graph, samples: Mapping[str, Operator]) -> None:
    """Raise GraphError if an operator cannot be protected as somebody said. `samples` has one of each."""
    for name, node in graph.nodes.items():
        policy = settle(node.policy, stateful=is_stateful(samples[name]))
        inputs = graph.inputs(name)
        if policy.intake is Intake.KEEP and not policy.saved and inputs:
            raise GraphError(
                f"what goes from '{inputs[0].source}' to '{name}' cannot be kept: '{name}' has no state "
                "and is not saved, so nobody knows what it had: add checkpoint(), or let it drop or wait"
            )
        if policy.intake is Intake.WAIT and not policy.buffer:
            _check_wait(graph, name)
        if "stale" in node.said:
            _check_stale(graph, node, policy, samples[name])


def _check_wait(graph: Graph, name: str) -> None:
    """Refuse that the senders of an operator wait for it, if others would be left without input."""
    branch = branch_beside(graph, name)
    if branch is not None:
        first = graph.inputs(name)[0].source
        raise GraphError(
            f"what goes from '{first}' to '{name}' cannot wait while '{name}' is away: '{branch.source}' "
            f"feeds '{branch.target}', too, which would stop; say how many messages of a channel may be "
            'held back, inputs("wait", buffer=1000), or let them drop or be kept'
        )


def branch_beside(graph: Graph, name: str) -> Edge | None:
    """An edge that leads away from an operator and all that is above it; None: all leads to it."""
    above = {name, *ancestors(graph, name)}
    return next(
        (e for e in graph.edges if e.source in above - {name} and e.target not in above), None
    )


def ancestors(graph: Graph, name: str) -> dict[str, None]:
    """The operators from which a path leads to this one, the nearest first; itself, if it is on a cycle."""
    found: dict[str, None] = {}
    asked = [name]
    while asked:
        sources = [e.source for target in asked for e in graph.inputs(target)]
        asked = [source for source in dict.fromkeys(sources) if source not in found]
        found |= dict.fromkeys(asked)
    return found


def _check_stale(graph: Graph, node: Node, policy: Policy, sample: Operator) -> None:
    if not sample.uses_time:
        raise GraphError(f"'{node.name}' has no windows that could be stale: leave stale= out")
    taken = any(e.source == node.name and e.output == TENTATIVE for e in graph.edges)
    if policy.stale is Stale.MARK and not taken:
        raise GraphError(
            f"'{node.name}' puts stale windows out on its output '{TENTATIVE}', and nobody takes it: use "
            f'output("{TENTATIVE}").sink("..."), or let them be dropped'
        )


# Barriers, which a single record too few or too many puts out of step for ever.


def barriers_by_order(graph: Graph, samples: Mapping[str, Operator]) -> dict[str, str]:
    """The barriers that pair records by their order, each with where records may be lost above it.

    That is a clause for a message. It names the nearest edge that is not kept or operator that is not
    saved, and otherwise a source: whatever is saved, a source that restarts alone leaves something out.
    """
    policies = {
        name: settle(node.policy, stateful=is_stateful(samples[name]))
        for name, node in graph.nodes.items()
    }
    return {
        name: _weak_spot(graph, name, policies)
        for name, sample in samples.items()
        if isinstance(sample, Barrier) and not sample.plan.by_value
    }


def _weak_spot(graph: Graph, barrier: str, policies: Mapping[str, Policy]) -> str:
    above = [barrier, *ancestors(graph, barrier)]
    sources = [name for name in above if graph.nodes[name].ingress is not None]
    for name in above:
        if name in sources:
            continue
        if not policies[name].saved:
            return f"the operator '{name}' is not saved"
        if policies[name].intake is not Intake.KEEP:
            return f"what goes from '{graph.inputs(name)[0].source}' to '{name}' is not kept"
    return f"the source '{sources[0]}' leaves out what was due while its slot was away"


def barrier_refusal(
    barriers: Mapping[str, str], protocol: CheckpointProtocol, guarantee: Guarantee
) -> str | None:
    """Why a run cannot have the barriers of its dataflow, in a sentence for its user; None if it can.

    `barriers` are those that pair by order, with the weak spot above each: only where every record counts
    exactly once do they stay in step.
    """
    if guarantee is Guarantee.EXACTLY_ONCE or not barriers:
        return None
    name, weak = next(iter(barriers.items()))
    why = weak if protocol.heeds_policies else f"it may lose or repeat some ({guarantee.value})"
    return (
        f"the barrier '{name}' pairs records by their order, which cannot be under {protocol.name}: {why}. "
        f'Pair them by a column, barrier(..., by="id"), or run it under {Guarantee.EXACTLY_ONCE.value}'
    )
