"""The rules that an order of layers must keep, checked on the pipeline's graph before anything runs.

Source: Saad-Falcon et al. 2024 (arXiv 2409.15254 v6), Table 4. Differs, each for a reason:
- A layer holds one kind only, except that branches may be whole pipelines: it is checked among side-by-side leaves.
- Unit tests may be generated before the first generator: nothing in them depends on candidates, and 30 of the authors'
  own configurations do so. For the same reason generator and evaluator of tests need not be neighbours.
- "A critic comes before a ranker or a fuser" is read as: what a critic writes must be used by a later ranker, fuser or
  revision, since rankers and fusers without a critic are among the published configurations.
- A revision (Snell et al. 2024) and custom functions may stand wherever there are candidates.
- "Ranker, critic, verifier and unit test layers stand alone in their layer" is read as: branches may not pass on the
  same candidates, since what one branch found out about a candidate would be lost where they join.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import combinations

import networkx as nx

from archon.errors import OrderError
from archon.pipeline.graph import Graph

_FREE = {"generator", "unit_test_generator", "function"}
"""Kinds that need no candidates."""
_READ_CRITIQUES = {"ranker", "fuser", "revise", "function"}


def check(graph: Graph) -> None:
    """Raise an OrderError that names every broken rule and the layers that break it.

    Raises:
        OrderError: the order breaks a rule.
    """
    broken = [message for rule in _RULES for message in rule(graph)]
    if broken:
        raise OrderError("; ".join(broken))


def _kind_by_node(graph: Graph) -> list[tuple[str, str]]:
    return [(node, graph.nodes[node]["kind"]) for node in graph]


def _kinds(graph: Graph, nodes: Iterable[str]) -> set[str]:
    return {graph.nodes[node]["kind"] for node in nodes}


def _starts_with_generator(graph: Graph) -> Iterator[str]:
    for node, kind in _kind_by_node(graph):
        if kind not in _FREE and not _kinds(graph, nx.ancestors(graph, node)) & {"generator", "function"}:
            yield f"{node!r} needs candidates, and no generator comes before it"


def _one_generating_layer(graph: Graph) -> Iterator[str]:
    for node, kind in _kind_by_node(graph):
        if kind == "generator":
            for before in sorted(nx.ancestors(graph, node)):
                if graph.nodes[before]["kind"] not in _FREE - {"generator"}:
                    yield f"{node!r} comes after {before!r}: generators belong in the first layer"
                    break


def _one_kind_side_by_side(graph: Graph) -> Iterator[str]:
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for node in graph:
        place = (tuple(sorted(graph.predecessors(node))), tuple(sorted(graph.successors(node))))
        groups.setdefault(place, []).append(node)
    for members in groups.values():
        kinds = _kinds(graph, members)
        if len(members) > 1 and len(kinds) > 1 and not kinds & {"function", "unit_test_generator"}:
            yield f"{', '.join(map(repr, members))} stand side by side: a layer holds one kind only"


def _branches_do_not_overlap(graph: Graph) -> Iterator[str]:
    makers: dict[str, frozenset[str]] = {}
    for node in nx.topological_sort(graph):
        makers[node] = _makers(graph, node, makers)
    joins = [sorted(graph.predecessors(node)) for node in graph]
    joins.append([node for node in graph if not any(True for _ in graph.successors(node))])
    told: set[tuple[str, str]] = set()
    for ends in joins:
        for one, two in combinations(ends, 2):
            shared = sorted(makers[one] & makers[two])
            if shared and (one, two) not in told:
                told.add((one, two))
                yield f"{one!r} and {two!r} pass on the same candidates of {shared[0]!r}: put them one after the other"


def _makers(graph: Graph, node: str, makers: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Return the layers whose candidates may be live behind a layer, given those of the layers before it."""
    here, before = graph.nodes[node], graph.predecessors(node)
    passed_on = frozenset[str]().union(*(makers[each] for each in before))
    if here["kind"] not in {"generator", "fuser", "revise"}:
        return passed_on
    return passed_on | {node} if getattr(here["layer"], "keep_inputs", False) else frozenset({node})


def _critiques_are_read(graph: Graph) -> Iterator[str]:
    for node, kind in _kind_by_node(graph):
        if kind == "critic" and not _kinds(graph, nx.descendants(graph, node)) & _READ_CRITIQUES:
            yield f"{node!r} writes critiques that nothing reads: put a ranker, a fuser or a revision after it"


def _tests_are_evaluated(graph: Graph) -> Iterator[str]:
    for node, kind in _kind_by_node(graph):
        if kind == "unit_test_generator":
            later = [graph.nodes[after]["layer"] for after in nx.descendants(graph, node)]
            if not any(layer.kind in {"unit_test_evaluator", "function"} or _reads_tests(layer) for layer in later):
                yield f"{node!r} writes tests that nothing reads: put a unit_test_evaluator or a verifier after it"


def _tests_exist(graph: Graph) -> Iterator[str]:
    for node, kind in _kind_by_node(graph):
        before = _kinds(graph, nx.ancestors(graph, node))
        if kind == "unit_test_evaluator" and not before & {"unit_test_generator", "function"}:
            yield f"{node!r} has no tests to evaluate: put a unit_test_generator before it"


def _reads_tests(layer: object) -> bool:
    return bool(getattr(layer, "show_tests", False) or getattr(layer, "unit_tests", 0))


_RULES: tuple[Callable[[Graph], Iterator[str]], ...] = (
    _starts_with_generator,
    _one_generating_layer,
    _one_kind_side_by_side,
    _branches_do_not_overlap,
    _critiques_are_read,
    _tests_are_evaluated,
    _tests_exist,
)
