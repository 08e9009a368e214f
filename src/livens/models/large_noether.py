"""Symmetries of large systems, element by element: what no element of a sum changes, the sum does not change."""

from __future__ import annotations

import functools

import casadi as ca
import numpy as np

from livens.expressions.evaluate import Evaluator
from livens.models.columns import momentum_products
from livens.models.element import ElementModel
from livens.models.groups import TypeGroup
from livens.models.system import System

#: Of each type, at most this many elements are looked at, spread over all of them, at this many states.
_ELEMENTS, _STATES = 24, 2
#: Changes up to this part of what enters them are round-off.
TOLERANCE = 1e-9


def is_symmetry_of_elements(system: System, name: str, k: np.ndarray) -> bool | None:
    """Whether a symmetry with generators linear in q leaves every element as it is; None if they are not linear.

    Elements that change, but not in sum, are not seen to have it.
    """
    generators = _generators(system, name)
    if generators is None:
        return None
    groups = [_Kept(group, generators, k) for group in system.groups]
    # one element of each type says nearly always what all of them say
    return all(group.by_one() for group in groups) and all(group.by_all() for group in groups)


class _Generator:
    """``xi(q) = A q + b``."""

    def __init__(self, rows: np.ndarray, columns: np.ndarray, values: np.ndarray, n: int) -> None:
        self._slopes: dict[int, list[tuple[int, float]]] = {}
        self._shift = np.zeros(n)
        for row, column, value in zip(rows.tolist(), columns.tolist(), values.tolist(), strict=True):
            if column < 0:
                self._shift[row] += value
            else:
                self._slopes.setdefault(row, []).append((column, value))

    def of(self, coordinates: list[int]) -> tuple[np.ndarray, np.ndarray] | None:
        """A and b of some coordinates; None if others enter as well."""
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
    """Whether the elements of one type keep the symmetry, or some of them if there are many."""

    def __init__(self, group: TypeGroup, generators: list[_Generator], k: np.ndarray) -> None:
        self._group, self._generators, self._k = group, generators, k

    @functools.cached_property
    def _check(self) -> _Check:
        return _Check(self._group.model)  # not derived where another type breaks the symmetry already

    def by_one(self) -> bool:
        return self._kept(0)

    def by_all(self) -> bool:
        chosen = np.unique(np.linspace(0, self._group.count - 1, _ELEMENTS).astype(int))
        return all(self._kept(int(i)) for i in chosen[1:])

    def _kept(self, i: int) -> bool:
        coordinates, k = self._group.coordinates[i].tolist(), self._k[self._group.parameters[i]]
        return all(self._check.kept(generator.of(coordinates), k) for generator in self._generators)


class _Check:
    """Derivatives of one type of element, and whether they vanish along a generator."""

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
        """All generators are looked at in the same states."""
        key = q.tobytes() + k.tobytes()
        if key not in self._on:
            self._on[key] = self._onto(q, k)
        return self._on[key]

    def _onto(self, q: np.ndarray, k: np.ndarray) -> np.ndarray | None:
        """A state that the element's constraints allow, if one is found."""
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
    """Whether terms cancel."""
    return bool(abs(terms.sum()) <= TOLERANCE * (np.abs(terms).sum() + 1e-12))
