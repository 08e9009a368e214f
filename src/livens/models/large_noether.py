"""Symmetry check of large systems, element by element: a sum of invariant terms is invariant."""

from __future__ import annotations

import functools

import casadi as ca
import numpy as np

from livens.expressions.evaluate import Evaluator
from livens.models.columns import momentum_products
from livens.models.element import ElementModel
from livens.models.groups import TypeGroup
from livens.models.system import System

#: Maximum number of elements per type, evenly spaced, and number of random states of the check.
_ELEMENTS, _STATES = 24, 2
#: Tolerance of a change, relative to the sum of the absolute terms.
TOLERANCE = 1e-9


def is_symmetry_of_elements(system: System, name: str, k: np.ndarray) -> bool | None:
    """Return whether a symmetry with linear generators leaves every element invariant; None if it is not linear.

    A symmetry of the sum that single elements do not have is not detected.
    """
    generators = _generators(system, name)
    if generators is None:
        return None
    groups = [_Kept(group, generators, k) for group in system.groups]
    # first one element of each type: cheap, and nearly always sufficient to reject
    return all(group.by_one() for group in groups) and all(group.by_all() for group in groups)


class _Generator:
    """Affine generator ``xi(q) = A q + b``."""

    def __init__(self, rows: np.ndarray, columns: np.ndarray, values: np.ndarray, n: int) -> None:
        self._slopes: dict[int, list[tuple[int, float]]] = {}
        self._shift = np.zeros(n)
        for row, column, value in zip(rows.tolist(), columns.tolist(), values.tolist(), strict=True):
            if column < 0:
                self._shift[row] += value
            else:
                self._slopes.setdefault(row, []).append((column, value))

    def of(self, coordinates: list[int]) -> tuple[np.ndarray, np.ndarray] | None:
        """Return A and b restricted to some coordinates; None if they depend on other coordinates."""
        place = {i: local for local, i in enumerate(coordinates)}
        A = np.zeros((len(place), len(place)))
        for i, local in place.items():
            for column, value in self._slopes.get(i, ()):
                if column not in place:
                    return None
                A[local, place[column]] += value
        return A, self._shift[coordinates]


def _generators(system: System, name: str) -> list[_Generator] | None:
    products = momentum_products(system, name)
    if products is None:
        return None
    return [_Generator(p.first - 2 * system.n, p.second, p.values, system.n) for p in products]


class _Kept:
    """Symmetry check of the elements of one type, or of a sample of them."""

    def __init__(self, group: TypeGroup, generators: list[_Generator], k: np.ndarray) -> None:
        self._group, self._generators, self._k = group, generators, k

    @functools.cached_property
    def _check(self) -> _Check:
        return _Check(self._group.model)  # derived lazily: another type may break the symmetry first

    def by_one(self) -> bool:
        return self._kept(0)

    def by_all(self) -> bool:
        chosen = np.unique(np.linspace(0, self._group.count - 1, _ELEMENTS).astype(int))
        return all(self._kept(int(i)) for i in chosen[1:])

    def _kept(self, i: int) -> bool:
        coordinates, k = self._group.coordinates[i].tolist(), self._k[self._group.parameters[i]]
        return all(self._check.kept(generator.of(coordinates), k) for generator in self._generators)


class _Check:
    """Gradients of one element type, and the test whether they vanish along a generator."""

    def __init__(self, model: ElementModel) -> None:
        L = model.T - model.V
        force = model.F - ca.gradient(model.R, model.v)
        slopes = [ca.gradient(L, model.q), ca.gradient(L, model.v), force]
        inputs = [model.q, model.v, model.t, model.k]
        self._model, self._on = model, dict[bytes, np.ndarray | None]()
        self._slopes = Evaluator(inputs, slopes)
        self._constraints = Evaluator(inputs, [model.g, ca.jacobian(model.g, model.q)]) if model.m else None

    def kept(self, generator: tuple[np.ndarray, np.ndarray] | None, k: np.ndarray) -> bool:
        if generator is None:
            return False
        (A, b), random = generator, np.random.default_rng(2)
        if not A.any() and not b.any():
            return True
        for _ in range(_STATES):
            q, v = random.uniform(0.5, 1.5, (2, self._model.n))
            xi, turned = A @ q + b, A @ v
            L_q, L_v, force = (part.ravel() for part in self._slopes(q, v, 0.3, k))
            terms = np.concatenate([L_q * xi, L_v * turned])
            if not (_vanishes(terms) and _vanishes(force * xi)):
                return False
            q_on = self._onto_once(q, k)
            if q_on is not None and self._constraints is not None:
                _, G = self._constraints(q_on, 0.0, 0.3, k)
                if not all(_vanishes(row * (A @ q_on + b)) for row in G):
                    return False
        return True

    def _onto_once(self, q: np.ndarray, k: np.ndarray) -> np.ndarray | None:
        """Return the projected state (cached: all generators use the same states)."""
        key = q.tobytes() + k.tobytes()
        if key not in self._on:
            self._on[key] = self._onto(q, k)
        return self._on[key]

    def _onto(self, q: np.ndarray, k: np.ndarray) -> np.ndarray | None:
        """Return a state on the element's constraints by Gauss-Newton iteration; None if it does not converge."""
        if self._constraints is None:
            return None
        for _ in range(50):
            g, G = self._constraints(q, 0.0, 0.3, k)
            if not np.isfinite(G).all():
                return None
            step = np.linalg.pinv(G, rcond=1e-10) @ g.ravel()
            q = q - step
            if np.abs(step).max() <= 1e-15 * (1.0 + np.abs(q).max()):
                return q
        return None


def _vanishes(terms: np.ndarray) -> bool:
    """Return whether the sum of terms vanishes relative to their absolute sum."""
    return bool(abs(terms.sum()) <= TOLERANCE * (np.abs(terms).sum() + 1e-12))
