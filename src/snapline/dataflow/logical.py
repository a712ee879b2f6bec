"""The logical graph: operators as nodes, streams between them as edges. It validates itself.

A cycle is legal only through an edge declared as feedback. Everything about the graph is checked before
anything runs, and every complaint says what to do.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from snapline.core.policy import Policy
from snapline.dataflow.feeds.feed import Feed
from snapline.dataflow.operators.guard import blame
from snapline.dataflow.operators.operator import IN, OUT, Operator
from snapline.dataflow.partition import Routing
from snapline.dataflow.usage.given import check_name
from snapline.errors import GraphError
from snapline.storage.api import Ingress


@dataclass(frozen=True, slots=True)
class OperatorContext:
    """What an operator may know about its task: which of how many it is."""

    index: int  # the number of its task among the tasks of the operator, from 0
    parallelism: int


Factory: TypeAlias = Callable[[], Operator] | Callable[[OperatorContext], Operator]
"""Builds an operator for one task. It is given the context if it has a parameter for it."""


@dataclass(frozen=True, slots=True)
class Node:
    """An operator of the logical graph."""

    name: str
    factory: Factory
    ingress: Ingress | Feed | None = None
    is_sink: bool = False
    detail: str = ""  # its parameters, which must be the same when a run is resumed
    folder: str | None = None  # where a sink also writes Parquet files
    pool: str = ""  # whose slots host it: see `deploy`
    policy: Policy | None = None  # how it is protected, if somebody said so
    said: frozenset[str] = frozenset()  # the parts of its policy that were said

    @property
    def bound(self) -> Ingress | None:
        """The ingress of a source, None for others; GraphError if it is a feed without a size."""
        if isinstance(self.ingress, Feed):
            raise GraphError(f"the source '{self.name}' has no size yet: bind the dataflow first")
        return self.ingress

    def build(self, context: OperatorContext) -> Operator:
        """A fresh operator for one task; raises OperatorFailed if its factory does not make one."""
        factory: Callable[..., Operator] = self.factory
        try:
            made = factory(context) if wants_context(factory) else factory()
            if not isinstance(made, Operator):
                raise TypeError(f"its factory returned {made!r:.60} where an Operator should be")
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise blame(
                self.name, error, where=f"the call that makes it for slot {context.index}"
            ) from error
        return made


def wants_context(factory: Callable[..., Any]) -> bool:
    """Whether a factory has a parameter without a default, to which the context is given."""
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(
        parameter.kind in positional and parameter.default is inspect.Parameter.empty
        for parameter in inspect.signature(factory).parameters.values()
    )


@dataclass(frozen=True, slots=True)
class Edge:
    """One output of an operator feeds one port of another."""

    source: str
    target: str
    routing: Routing
    output: str = OUT
    port: str = IN
    feedback: bool = False


class Graph:
    """Nodes and edges of one dataflow, in the order in which they were added."""

    def __init__(self, name: str) -> None:
        self.name: Final = name
        self.nodes: Final[dict[str, Node]] = {}
        self.edges: Final[list[Edge]] = []

    def fresh_name(self, base: str) -> str:
        """A name that is not taken: `map`, then `map-2`, ..."""
        names = (base if n == 1 else f"{base}-{n}" for n in range(1, len(self.nodes) + 2))
        return next(name for name in names if name not in self.nodes)

    def add(self, node: Node) -> Node:
        """Add a node."""
        check_name(node.name)
        if node.name in self.nodes:
            raise GraphError(
                f"two operators are called '{node.name}': give one of them another name"
            )
        self.nodes[node.name] = node
        return node

    def connect(self, edge: Edge) -> None:
        """Add an edge between nodes that were added before."""
        for end in (edge.source, edge.target):
            if end not in self.nodes:
                raise GraphError(f"an edge names '{end}', which is no operator of {self.name}")
        self.edges.append(edge)

    def inputs(self, name: str) -> list[Edge]:
        """The edges into an operator."""
        return [edge for edge in self.edges if edge.target == name]

    def order(self) -> tuple[str, ...]:
        """The operators in topological order of the regular edges; raises on an undeclared cycle."""
        waiting = {name: self._predecessors(name) for name in self.nodes}
        done: dict[str, None] = {}
        while waiting:
            ready = [name for name, before in waiting.items() if all(b in done for b in before)]
            if not ready:
                raise GraphError(
                    f"{self.name} has a cycle through {', '.join(waiting)} without a feedback edge:"
                    " declare one with flow.feedback(...)"
                )
            for name in ready:
                done[name] = None
                del waiting[name]
        return tuple(done)

    def _predecessors(self, name: str) -> list[str]:
        return [edge.source for edge in self.inputs(name) if not edge.feedback]

    def validate(self) -> None:
        """Raise GraphError if the graph cannot run."""
        if not any(node.ingress for node in self.nodes.values()):
            raise GraphError(f"{self.name} has no source: begin with flow.source(...)")
        if not any(node.is_sink for node in self.nodes.values()):
            raise GraphError(f"{self.name} has no sink: end a stream with .sink(name)")
        for name, node in self.nodes.items():
            inputs = self.inputs(name)
            if node.ingress is not None and inputs:
                raise GraphError(f"'{name}' is a source and cannot take the output of another")
            if node.ingress is None and all(edge.feedback for edge in inputs):
                raise GraphError(f"'{name}' has no regular input: only a source can do without one")
        self.order()


def downstream_uses_time(graph: Graph, uses_time: Mapping[str, bool]) -> dict[str, bool]:
    """Whether an operator, or any after it on regular edges, needs event time."""
    needs = dict(uses_time)
    for name in reversed(graph.order()):
        if needs[name]:
            for edge in graph.inputs(name):
                needs[edge.source] = needs[edge.source] or not edge.feedback
    return needs
