"""Symmetry generators: if ``q -> q + a xi(q)`` leaves L invariant, ``p . xi(q)`` is conserved (Noether)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import casadi as ca
import numpy as np

from livens import math as m
from livens.errors import InputError, ModelError
from livens.expressions.tracing import FunctionTracer
from livens.types import ModelFunction

__all__ = ["rotations", "translations"]


def trace_generator(name: str, function: ModelFunction, n: int) -> ca.Function:
    """Trace a user-defined symmetry; return its generators as the columns of a function of q."""
    q, role = ca.SX.sym("q", n), f"symmetry '{name}'"
    value = FunctionTracer({"q": q}, verb="return").trace(role, function)
    try:
        rows = m.array(value)
    except (TypeError, ValueError):
        rows = np.zeros(0)
    if rows.ndim not in (1, 2) or rows.shape[-1] != n:
        raise ModelError(f"{role} must return a vector of length {n}, or a list of them")
    return ca.Function("xi", [q], [ca.densify(m.to_casadi(rows.reshape(-1, n))).T])


def is_linear_generator(generator: ca.Function) -> bool:
    """Return whether the generators are affine in q, as those of translations and rotations."""
    q = ca.SX.sym("q", generator.numel_in(0))
    return not ca.depends_on(ca.jacobian(ca.vec(generator(q)), q), q)


def keeps_momentum(scheme: Any, model: Any, name: str) -> bool:
    """Return whether a scheme guarantees a momentum map with generators affine in q, of a symmetry of the model.

    Schemes whose guarantee depends on more than the model, such as a scaling of their steps, have a method
    `keeps_momentum`.
    """
    if "momentum_maps" not in scheme.conserves or not is_linear_generator(model.symmetries[name]):
        return False
    condition = getattr(scheme, "keeps_momentum", None)
    return condition is None or bool(condition(model, name))


def _point_dofs(argument: str, dofs: Any) -> list[list[int]]:
    """Return the coordinate indices of points, one to three per point, checked."""
    is_nested = isinstance(dofs, (list, tuple, range)) and all(
        isinstance(point, (list, tuple, range)) for point in dofs
    )
    groups = [list(point) for point in dofs] if is_nested else []
    if not groups or any(
        not isinstance(i, (int, np.integer)) or isinstance(i, bool) for point in groups for i in point
    ):
        raise InputError(f"{argument} must be lists of indices of coordinates, such as [[0, 1, 2]], got {dofs!r}")
    if len({len(point) for point in groups}) > 1 or len(groups[0]) not in (1, 2, 3):
        raise InputError(f"{argument} must all be of one, two or three coordinates, got {dofs!r}")
    return groups


def translations(points: Sequence[Sequence[int]]) -> Callable[[np.ndarray], np.ndarray]:
    """Return the generators of translations of points; the momentum map is the linear momentum.

    Parameters
    ----------
    points : sequence of sequence of int
        Indices of the Cartesian coordinates of each point.

    Returns
    -------
    callable
        Function of q for `symmetries` of a `System`.

    Raises
    ------
    InputError
        If `points` is not a list of lists of indices of equal length.
    """
    groups = _point_dofs("points", points)

    def generator(q: np.ndarray) -> np.ndarray:
        xi = np.zeros((len(groups[0]), len(q)))
        for group in groups:
            xi[range(len(group)), group] = 1.0
        return xi

    return generator


def rotations(vectors: Sequence[Sequence[int]]) -> Callable[[np.ndarray], np.ndarray]:
    """Return the generators of rotations about the origin; the momentum map is the angular momentum.

    There is one generator in the plane, and there are three in space (about x, y and z).

    Parameters
    ----------
    vectors : sequence of sequence of int
        Indices of the Cartesian coordinates of each vector: points and directors.

    Returns
    -------
    callable
        Function of q for `symmetries` of a `System`.

    Raises
    ------
    InputError
        If `vectors` is not a list of lists of indices of equal length.
    """
    groups = _point_dofs("vectors", vectors)

    def generator(q: np.ndarray) -> np.ndarray:
        planes = [(0, 1)] if len(groups[0]) == 2 else [(1, 2), (2, 0), (0, 1)]
        xi = np.zeros((len(planes), len(q)), dtype=object)
        for group in groups:
            for row, (a, b) in enumerate(planes):
                xi[row, group[a]] = -q[group[b]]
                xi[row, group[b]] = q[group[a]]
        return xi

    return generator
