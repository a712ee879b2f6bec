"""What the columns of a dataflow's sinks mean: dates, timestamps and decimals that come back as such."""

from snapline.dataflow.feeds.frames import FrameFeed
from snapline.dataflow.graph import Dataflow
from snapline.dataflow.logical import Edge, Graph, OperatorContext
from snapline.dataflow.operators.known import Known, merged
from snapline.dataflow.operators.operator import OUT
from snapline.storage.column_types import Meanings


def sink_meanings(flow: Dataflow) -> dict[str, Meanings]:
    """The meanings of the columns of each sink that has some.

    `flow` is the dataflow before it was bound. Raises GraphError if numbers are mixed that mean different
    things, in a join, in a union or in a window.
    """
    graph = flow.graph
    if not any(isinstance(node.ingress, FrameFeed) for node in graph.nodes.values()):
        return {}
    known: dict[tuple[str, str], Known] = {}
    for name in graph.order():
        _add(graph, name, known)
    sinks = [name for name, node in graph.nodes.items() if node.is_sink]
    found = {sink: known.get((sink, OUT)) or {} for sink in sinks}
    meant = {sink: {n: m for n, m in each.items() if m is not None} for sink, each in found.items()}
    return {sink: meanings for sink, meanings in meant.items() if meanings}


def _add(graph: Graph, name: str, known: dict[tuple[str, str], Known]) -> None:
    """Note what is known behind an operator, for each of its outputs that is used."""
    node = graph.nodes[name]
    if node.ingress is not None:
        meanings = node.ingress.meanings if isinstance(node.ingress, FrameFeed) else {}
        known[name, OUT] = {column: meanings.get(column) for column in node.ingress.schema}
        return
    ports: dict[str, list[Edge]] = {}
    for edge in graph.inputs(name):
        ports.setdefault(edge.port, []).append(edge)
    given = {
        port: merged([_behind(edge, known) for edge in edges]) for port, edges in ports.items()
    }
    operator = node.build(OperatorContext(0, 1))
    for output in {OUT, *(edge.output for edge in graph.edges if edge.source == name)}:
        known[name, output] = operator.known_columns(output, given)


def _behind(edge: Edge, known: dict[tuple[str, str], Known]) -> Known:
    return None if edge.feedback else known[edge.source, edge.output]
