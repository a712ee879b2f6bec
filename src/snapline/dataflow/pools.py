"""Pools: which slots host which operators.

An operator is in the *default pool*, unless it was placed into another: with `.pool("model")` in the
dataflow, or because whoever runs it names a pool after the operator. A pool fails without the others, and
they without it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from snapline.arguments import nearest
from snapline.dataflow.logical import Graph, Node
from snapline.errors import GraphError
from snapline.ids import SlotId, TaskId, task_id

NO_POOLS: Mapping[str, int] = MappingProxyType({})
"""Sizes of pools where nobody gives any."""


DEFAULT_POOL: Final = ""
"""The name of the pool in which an operator is that nobody has placed elsewhere."""

POOL_SLOTS: Final = 1
"""How many slots a pool has if nobody says so."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The slots of every pool."""

    pools: Mapping[str, tuple[SlotId, ...]]

    @property
    def slots(self) -> int:
        """How many slots there are in all."""
        return sum(map(len, self.pools.values()))

    def tasks(self, operator: str, pool: str) -> tuple[TaskId, ...]:
        """The tasks of an operator in a pool."""
        return tuple(task_id(operator, slot) for slot in self.pools[pool])


def placed(graph: Graph, names: Iterable[str]) -> dict[str, Node]:
    """The operators that get pools of their own, and sinks that go with them, because a pool is named so.

    Pools that the dataflow has already stay as they are. Raises GraphError if there is no such operator.
    """
    pools = set(_named(graph))
    alone = {name for name in names if name not in pools}
    for name in alone:
        if name not in graph.nodes:
            hint = nearest(name, (*pools, *graph.nodes))
            raise GraphError(f"{graph.name} has no pool and no operator {name!r}; {hint}")
        if graph.nodes[name].is_sink:
            source = graph.inputs(name)[0].source
            raise GraphError(f"{name!r} is a sink, which is where its input is: place {source!r}")
    changed = {name: replace(graph.nodes[name], pool=name) for name in alone}
    for name, node in graph.nodes.items():
        sources = {edge.source for edge in graph.inputs(name)}
        if node.is_sink and len(sources) == 1 and sources <= alone:
            changed[name] = replace(node, pool=sources.pop())
    return changed


def _named(graph: Graph) -> dict[str, None]:
    return dict.fromkeys(node.pool for node in graph.nodes.values() if node.pool != DEFAULT_POOL)


def pool_sizes(graph: Graph, sizes: Mapping[str, int]) -> dict[str, int]:
    """How many slots each pool of a dataflow has, in the order in which it names them.

    The default pool is left out. Raises GraphError if a size is for no pool of the dataflow.
    """
    named = _named(graph)
    for name, size in sizes.items():
        if name not in named:
            known = f"it has {', '.join(named)}" if named else "none of its operators is in one"
            raise GraphError(f"{graph.name} has no pool {name!r}: {known}")
        if size < 1:
            raise GraphError(f"the pool {name!r} needs at least one slot, not {size}")
    if all(node.pool != DEFAULT_POOL for node in graph.nodes.values()):
        raise GraphError(f"all operators of {graph.name} are in pools: leave one of them in none")
    return {name: sizes.get(name, POOL_SLOTS) for name in named}


def pool_slots(slots: int, sizes: Mapping[str, int]) -> dict[str, tuple[SlotId, ...]]:
    """The slots of every pool, where the default pool has so many and the others have these sizes."""
    pools, first = {DEFAULT_POOL: tuple(range(slots))}, slots
    for name, size in sizes.items():
        pools[name] = tuple(range(first, first + size))
        first += size
    return pools
