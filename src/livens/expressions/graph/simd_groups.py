"""Partition of graph nodes into isomorphism classes for SIMD evaluation (colour refinement)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence

from livens.expressions.graph.taylor_graph import VectorFieldGraph


def simd_groups(field: VectorFieldGraph, scalar: bool = False) -> list[list[int]]:
    """Return groups of isomorphic nodes in topological order; one node per group if `scalar`.

    Nodes of one group have the same structure down to the variables, operands in the same groups and consumers in the
    same groups. The partition is refined until it is stable. Equal structure implies equal depth, so that no node
    depends on another node of its group.
    """
    nodes, depth = field.nodes, list[int]()
    for node in nodes:
        depth.append(1 + max((depth[a] for a in node.arguments), default=-1))
    if scalar:
        return [[n] for n in sorted(range(len(nodes)), key=lambda n: (depth[n], n))]

    def initial_label(n: int) -> Hashable:
        node = nodes[n]
        if node.op == "lin":
            return node.op, len(node.arguments), node.data[1] != 0.0
        data = (node.data[0] < field.n_controlled,) if node.op == "var" else node.data
        return node.op, len(node.arguments), data, len(set(node.arguments))

    labels = _relabel([(initial_label(n), depth[n]) for n in range(len(nodes))])
    variable = {node.data[0]: n for n, node in enumerate(nodes) if node.op == "var"}
    differentiated_by = defaultdict[int, set[int]](set)
    for i, n in enumerate(field.derivatives):
        differentiated_by[n].add(variable[i])
    n_classes = 0
    while len(set(labels)) != n_classes:
        n_classes = len(set(labels))
        sizes, consumers = Counter(labels), defaultdict[int, set[tuple[int, int]]](set)
        for n, node in enumerate(nodes):
            # sums, including sums across lanes, are invariant under permutation of their operands
            is_commutative = node.op == "lin" or (node.op == "dot" and sizes[labels[n]] == 1)
            for slot, a in enumerate(node.arguments):
                consumers[a].add((labels[n], 0 if is_commutative else slot))
        refined: list[Hashable] = []
        for n, node in enumerate(nodes):
            operand_labels = [labels[a] for a in node.arguments]
            variable_labels = frozenset(labels[i] for i in differentiated_by[n])
            derivative_label = labels[field.derivatives[node.data[0]]] if node.op == "var" else -1
            operands = tuple(sorted(operand_labels) if node.op == "lin" else operand_labels)
            refined.append((labels[n], operands, frozenset(consumers[n]), variable_labels, derivative_label))
        labels = _relabel(refined)
    classes = defaultdict[int, list[int]](list)
    for n, label in enumerate(labels):
        classes[label].append(n)
    return sorted(classes.values(), key=lambda group: (depth[group[0]], group[0]))


def _relabel(keys: Sequence[Hashable]) -> list[int]:
    """Relabel keys by integers in order of first occurrence."""
    label_of: dict[Hashable, int] = {}
    return [label_of.setdefault(key, len(label_of)) for key in keys]
