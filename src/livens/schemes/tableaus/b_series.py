"""B-series of partitioned Runge-Kutta methods and of their modified equations, over coloured rooted trees.

The step is ``y1 = y0 + sum h^n a(tau)/sigma(tau) F(tau)``, and the modified equation, whose exact flow is the step, is
``y' = sum h^(n-1) b(tau)/sigma(tau) F(tau)``, over trees with n vertices (Hairer, Lubich and Wanner 2006, III.1, IX.9).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

#: Magnitude below which a coefficient of the modified equation counts as zero; they are multiples of 1/n!.
_ZERO = 1e-13


@dataclass(frozen=True, order=True)
class ColouredTree:
    """Rooted tree whose vertices belong to the parts of a partitioned system.

    Parameters
    ----------
    colour : int
        Part of the root.
    branches : tuple of ColouredTree, default ()
        Subtrees of the root, sorted.
    """

    colour: int
    branches: tuple[ColouredTree, ...] = ()

    @functools.cached_property
    def n_vertices(self) -> int:
        """Number of vertices."""
        return 1 + sum(branch.n_vertices for branch in self.branches)

    @functools.cached_property
    def symmetry(self) -> int:
        """Symmetry coefficient sigma: the number of automorphisms."""
        repeated = math.prod(math.factorial(count) for count in Counter(self.branches).values())
        return repeated * math.prod(branch.symmetry for branch in self.branches)

    def cuts(self) -> Iterator[tuple[ColouredTree, ColouredTree]]:
        """Yield the two trees that remain after removal of each edge, that with the root first."""
        for i, branch in enumerate(self.branches):
            others = self.branches[:i] + self.branches[i + 1 :]
            yield ColouredTree(self.colour, others), branch
            for root_tree, removed in branch.cuts():
                yield ColouredTree(self.colour, tuple(sorted((*others, root_tree)))), removed


@functools.cache
def coloured_trees(n_vertices: int, n_colours: int) -> tuple[ColouredTree, ...]:
    """Return all coloured rooted trees with this number of vertices."""
    return tuple(
        ColouredTree(colour, forest)
        for colour in range(n_colours)
        for forest in _forests(n_vertices - 1, n_vertices - 1, n_colours)
    )


@functools.cache
def _forests(n_vertices: int, largest: int, n_colours: int) -> tuple[tuple[ColouredTree, ...], ...]:
    """Return all sorted multisets of trees with n vertices in total, none with more vertices than `largest`."""
    if not n_vertices:
        return ((),)
    forests: list[tuple[ColouredTree, ...]] = []
    for size in range(min(n_vertices, largest), 0, -1):
        for count in range(n_vertices // size, 0, -1):
            chosen = itertools.combinations_with_replacement(coloured_trees(size, n_colours), count)
            rest = _forests(n_vertices - count * size, size - 1, n_colours)
            forests += [tuple(sorted((*trees, *others))) for trees, others in itertools.product(chosen, rest)]
    return tuple(forests)


class ModifiedCoefficients:
    """Coefficients b of the modified equation of a partitioned Runge-Kutta method, by recursion over trees.

    Parameters
    ----------
    methods : sequence of (array of shape (s, s), array of shape (s,))
        Runge-Kutta matrix and weights of each part.
    """

    def __init__(self, methods: Sequence[tuple[np.ndarray, np.ndarray]]) -> None:
        self.methods = tuple(methods)
        self._stages: dict[tuple[ColouredTree, ...], np.ndarray] = {}
        self._derivatives: dict[tuple[int, ColouredTree], float] = {}

    def of_step(self, tree: ColouredTree) -> float:
        """Return a(tau), the coefficient of the step."""
        return float(self.methods[tree.colour][1] @ self._stage_weights(tree.branches))

    def of_equation(self, tree: ColouredTree) -> float:
        """Return b(tau), the coefficient of the modified equation."""
        value = self._lie_derivative(1, tree)
        return value if abs(value) > _ZERO else 0.0

    def _stage_weights(self, branches: tuple[ColouredTree, ...]) -> np.ndarray:
        """Return the elementary weights of the stages of a tree with these branches."""
        if branches not in self._stages:
            factors = [self.methods[branch.colour][0] @ self._stage_weights(branch.branches) for branch in branches]
            ones = np.ones(len(self.methods[0][1]))
            self._stages[branches] = functools.reduce(np.multiply, factors, ones)
        return self._stages[branches]

    def _lie_derivative(self, power: int, tree: ColouredTree) -> float:
        """Return the coefficient of the Lie derivative of order ``power - 1`` of the modified vector field."""
        key = power, tree
        if key not in self._derivatives:
            if power == 1:
                higher = range(2, tree.n_vertices + 1)
                value = self.of_step(tree) - sum(self._lie_derivative(j, tree) / math.factorial(j) for j in higher)
            else:
                value = sum(
                    self._lie_derivative(power - 1, root_tree) * self._lie_derivative(1, removed)
                    for root_tree, removed in tree.cuts()
                    if root_tree.n_vertices >= power - 1
                )
            self._derivatives[key] = value
        return self._derivatives[key]
