"""A pipeline as a `networkx.DiGraph` of its leaf layers: what is validated and drawn.

A node is a leaf's label, with its `kind` and the leaf itself as `layer`; an edge says that the second layer reads what
the first left. Side-by-side branches start from the same predecessors. A refine loop adds no edge to the graph,
which stays acyclic: the way back is the attribute `loop` of its last nodes, naming the first ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import networkx as nx

from archon.pipeline.compose import Parallel, Refine, Sequence
from archon.pipeline.layer import Layer, Leaf

if TYPE_CHECKING:
    Graph = nx.DiGraph[str]
else:
    Graph = nx.DiGraph


def graph_of(layer: Layer) -> Graph:
    """Return the graph of a labelled layer."""
    graph: Graph = nx.DiGraph()
    _add(graph, layer, ())
    return graph


def _add(graph: Graph, layer: Layer, before: tuple[str, ...]) -> tuple[str, ...]:
    """Add a layer behind the nodes `before` and return the nodes that the next layer comes behind."""
    match layer:
        case Sequence():
            for part in layer.layers:
                before = _add(graph, part, before)
            return before
        case Parallel():
            return tuple(node for part in layer.layers for node in _add(graph, part, before))
        case Refine():
            known = set(graph)
            last = _add(graph, layer.body, before)
            inside = [node for node in graph if node not in known]
            firsts = tuple(node for node in inside if not any(one in inside for one in graph.predecessors(node)))
            for node in last:
                graph.nodes[node]["loop"] = tuple(dict.fromkeys((*graph.nodes[node].get("loop", ()), *firsts)))
            return last
        case Leaf():
            graph.add_node(layer.name, kind=layer.kind, layer=layer)
            graph.add_edges_from((node, layer.name) for node in before)
            return (layer.name,)
        case _:
            graph.add_node(repr(layer), kind="function", layer=layer)
            graph.add_edges_from((node, repr(layer)) for node in before)
            return (repr(layer),)


def drawn(graph: Graph) -> str:
    """Return the graph as a Mermaid flow chart."""
    lines = ["flowchart LR"]
    ids = {node: f"n{index}" for index, node in enumerate(graph)}
    lines += [f'    {ids[node]}["{_quoted(node)}"]' for node in graph]
    lines += [f"    {ids[one]} --> {ids[two]}" for one, two in graph.edges]
    backs = [(last, first) for last in graph for first in graph.nodes[last].get("loop", ())]
    lines += [f"    {ids[last]} -. not verified .-> {ids[first]}" for last, first in backs]
    return "\n".join(lines)


def _quoted(label: str) -> str:
    """Return a label as Mermaid wants it, which has no other escape than an entity."""
    return label.replace('"', "#quot;")
