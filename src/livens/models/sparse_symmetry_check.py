"""Symmetry check of large systems, element by element: a sum of invariant terms is invariant."""

from __future__ import annotations

import functools

import casadi as ca
import numpy as np

from livens.expressions.evaluate import Evaluator
from livens.models.element import ElementType
from livens.models.element_groups import ElementGroup
from livens.models.element_sums import momentum_map_forms
from livens.models.initialization.gauss_newton import gauss_newton
from livens.models.system import System

#: Maximum number of elements per type, evenly spaced, and number of random states of the check.
_N_ELEMENTS, _N_STATES = 24, 2
#: Tolerance of a change, relative to the sum of the absolute terms.
TOLERANCE = 1e-9
#: Times of the check in seconds: forces may be switched on later.
TIMES = (0.3, *np.geomspace(1e-3, 1e4, 22).tolist())


def has_elementwise_symmetry(system: System, name: str, k: np.ndarray) -> bool | None:
    """Return whether a symmetry with linear generators leaves every element invariant; None if it is not linear.

    A symmetry of the sum that single elements do not have is not detected.
    """
    generators = _generators(system, name)
    if generators is None:
        return None
    # first one element of each type: cheap, and nearly always sufficient to reject; weights and forces break most
    # symmetries, and are checked before joints and bodies
    ordered = sorted(system.element_groups, key=lambda g: (g.element_type.m > 0, not g.element_type.T.is_zero()))
    groups = [_GroupCheck(group, generators, k) for group in ordered]
    return all(group.first_element() for group in groups) and all(group.sample() for group in groups)


class _Generator:
    """Affine generator ``xi(q) = A q + b``."""

    def __init__(self, rows: np.ndarray, columns: np.ndarray, values: np.ndarray, n: int) -> None:
        self._matrix: dict[int, list[tuple[int, float]]] = {}
        self._offset = np.zeros(n)
        for row, column, value in zip(rows.tolist(), columns.tolist(), values.tolist(), strict=True):
            if column < 0:
                self._offset[row] += value
            else:
                self._matrix.setdefault(row, []).append((column, value))

    def restrict(self, coordinates: list[int]) -> tuple[np.ndarray, np.ndarray] | None:
        """Return A and b restricted to some coordinates; None if they depend on other coordinates."""
        local_index = {i: local for local, i in enumerate(coordinates)}
        A = np.zeros((len(local_index), len(local_index)))
        for i, local in local_index.items():
            for column, value in self._matrix.get(i, ()):
                if column not in local_index:
                    return None
                A[local, local_index[column]] += value
        return A, self._offset[coordinates]


def _generators(system: System, name: str) -> list[_Generator] | None:
    forms = momentum_map_forms(system, name)
    if forms is None:
        return None
    return [_Generator(p.rows - 2 * system.n, p.columns, p.values, system.n) for p in forms]


class _GroupCheck:
    """Symmetry check of the elements of one type, or of a sample of them."""

    def __init__(self, group: ElementGroup, generators: list[_Generator], k: np.ndarray) -> None:
        self._group, self._generators, self._k = group, generators, k

    @functools.cached_property
    def _check(self) -> _InvarianceCheck:
        return _InvarianceCheck(self._group.element_type)  # derived lazily: another type may break the symmetry first

    def first_element(self) -> bool:
        return self._is_invariant(0)

    def sample(self) -> bool:
        indices = np.unique(np.linspace(0, self._group.count - 1, _N_ELEMENTS).astype(int))
        return all(self._is_invariant(int(i)) for i in indices[1:])

    def _is_invariant(self, i: int) -> bool:
        coordinates, k = self._group.coordinates[i].tolist(), self._k[self._group.parameters[i]]
        return all(self._check.is_invariant(generator.restrict(coordinates), k) for generator in self._generators)


class _InvarianceCheck:
    """Gradients of one element type, and the test whether they vanish along a generator."""

    def __init__(self, model: ElementType) -> None:
        L = model.T - model.V
        force = model.F - ca.gradient(model.R, model.v)
        gradients = [ca.gradient(L, model.q), ca.gradient(L, model.v), force]
        inputs = [model.q, model.v, model.t, model.k]
        self._model, self._projected = model, dict[bytes, np.ndarray | None]()
        self._gradients = Evaluator(inputs, gradients)
        self._times = TIMES if ca.depends_on(ca.vertcat(*gradients), model.t) else TIMES[:1]
        self._constraints = Evaluator(inputs, [model.g, ca.jacobian(model.g, model.q)]) if model.m else None

    def is_invariant(self, generator: tuple[np.ndarray, np.ndarray] | None, k: np.ndarray) -> bool:
        if generator is None:
            return False
        (A, b), random = generator, np.random.default_rng(2)
        if not A.any() and not b.any():
            return True
        for _ in range(_N_STATES):
            q, v = random.uniform(0.5, 1.5, (2, self._model.n))
            xi, xi_dot = A @ q + b, A @ v
            for t in self._times:
                L_q, L_v, force = (part.ravel().copy() for part in self._gradients(q, v, t, k))
                terms = np.concatenate([L_q * xi, L_v * xi_dot])
                is_known = t == self._times[0] or np.isfinite(terms).all()
                if is_known and not (_vanishes(terms) and _vanishes(force * xi)):
                    return False
            q_projected = self._projected_state(q, k)
            if q_projected is not None and self._constraints is not None:
                _, G = self._constraints(q_projected, 0.0, 0.3, k)
                if not all(_vanishes(row * (A @ q_projected + b)) for row in G):
                    return False
        return True

    def _projected_state(self, q: np.ndarray, k: np.ndarray) -> np.ndarray | None:
        """Return the projected state (cached: all generators use the same states)."""
        key = q.tobytes() + k.tobytes()
        if key not in self._projected:
            self._projected[key] = self._project(q, k)
        return self._projected[key]

    def _project(self, q: np.ndarray, k: np.ndarray) -> np.ndarray | None:
        """Return a state on the element's constraints by Gauss-Newton iteration; None if it does not converge."""
        if self._constraints is None:
            return None
        constraints = self._constraints

        def step(q: np.ndarray) -> np.ndarray | None:
            g, G = constraints(q, 0.0, 0.3, k)
            return np.linalg.pinv(G, rcond=1e-10) @ g.ravel() if np.isfinite(G).all() else None

        projected, converged = gauss_newton(step, q)
        return projected if converged else None


def _vanishes(terms: np.ndarray) -> bool:
    """Return whether the sum of terms vanishes relative to their absolute sum."""
    return bool(abs(terms.sum()) <= TOLERANCE * (np.abs(terms).sum() + 1e-12))
