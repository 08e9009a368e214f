"""Partition of graph nodes into isomorphism classes for SIMD evaluation (colour refinement)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence

from livens.expressions.graph.elementary import Field


def groups(field: Field, alone: bool = False) -> list[list[int]]:
    """Return groups of isomorphic nodes in topological order; one node per group if `scalar`.

    Nodes of one group have the same structure down to the variables, operands in the same groups and consumers in the
    same groups. The partition is refined until it is stable. Equal structure implies equal depth, so that no node
    depends on another node of its group.
    """
    nodes, depth = field.nodes, list[int]()
    for node in nodes:
        depth.append(1 + max((depth[a] for a in node.arguments), default=-1))
    if alone:
        return [[n] for n in sorted(range(len(nodes)), key=lambda n: (depth[n], n))]

    def kind(n: int) -> Hashable:
        node = nodes[n]
        if node.op == "lin":
            return node.op, len(node.arguments), node.data[1] != 0.0
        data = (node.data[0] < field.counted,) if node.op == "var" else node.data
        return node.op, len(node.arguments), data, len(set(node.arguments))

    labels = _numbered([(kind(n), depth[n]) for n in range(len(nodes))])
    variable = {node.data[0]: n for n, node in enumerate(nodes) if node.op == "var"}
    rate_of = defaultdict[int, set[int]](set)
    for i, n in enumerate(field.rates):
        rate_of[n].add(variable[i])
    count = 0
    while len(set(labels)) != count:
        count = len(set(labels))
        sizes, consumers = Counter(labels), defaultdict[int, set[tuple[int, int]]](set)
        for n, node in enumerate(nodes):
            # sums, including sums across lanes, are invariant under permutation of their operands
            in_any_order = node.op == "lin" or (node.op == "dot" and sizes[labels[n]] == 1)
            for slot, a in enumerate(node.arguments):
                consumers[a].add((labels[n], 0 if in_any_order else slot))
        fresh: list[Hashable] = []
        for n, node in enumerate(nodes):
            own = [labels[a] for a in node.arguments]
            rates = frozenset(labels[i] for i in rate_of[n])
            rate = labels[field.rates[node.data[0]]] if node.op == "var" else -1
            operands = tuple(sorted(own) if node.op == "lin" else own)
            fresh.append((labels[n], operands, frozenset(consumers[n]), rates, rate))
        labels = _numbered(fresh)
    parts = defaultdict[int, list[int]](list)
    for n, label in enumerate(labels):
        parts[label].append(n)
    return sorted(parts.values(), key=lambda group: (depth[group[0]], group[0]))


def _numbered(keys: Sequence[Hashable]) -> list[int]:
    """Relabel keys by integers in order of first occurrence."""
    seen: dict[Hashable, int] = {}
    return [seen.setdefault(key, len(seen)) for key in keys]
