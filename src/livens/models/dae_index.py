"""Matrix pencil of a DAE ``residual(t, x, x') = 0``: algebraic variables and the index of each variable.

Let ``E = dr/dx'`` and ``F = dr/dx`` at a generic state. A small perturbation delta of the differential equations
changes the solution of ``(E/h + F) dx = delta`` by h delta in differential variables and algebraic variables of index
1. The change is delta in variables of index 2 (multipliers of velocity-level constraints, velocities with position
constraints) and delta/h in variables of index 3. The index of a variable is measured by this exponent. Error norms of
step size control weight variables of index 2 and 3 by h and h^2 (Hairer and Wanner, sect. VII.4).

The pencil at a fixed time does not determine the index where it is singular, or where ker E depends on time (Kunkel and
Mehrmann 2006, sect. 3.1). The index of such equations is not known.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from livens.expressions.probe import HIGH, LOW, Probe
from livens.models.linalg import EXACT_RTOL, numerical_rank
from livens.types import Expr

if TYPE_CHECKING:
    from livens.models.descriptor import Descriptor, DescriptorModel

#: Step h of the perturbation test, smaller than any time scale, so that stiffness does not affect the index.
_PERTURBATION_STEP = 1e-60
#: Relative tolerance of roundoff in rotated matrices.
_ZERO_TOLERANCE = 1e-13


@dataclass(frozen=True)
class Pencil:
    """Matrix pencil (E, F) of a DAE at a generic state: index and type of its variables and equations."""

    #: Index of every variable: 1 for differential and index-1 algebraic variables, 2 or more otherwise.
    indices: tuple[int, ...]
    #: Variables whose derivative occurs in no equation, and equations without derivatives.
    algebraic_variables: tuple[int, ...]
    algebraic_equations: tuple[int, ...]
    #: Projector onto ker E; None if ker E depends on the state.
    projector: np.ndarray | None
    #: Whether E or F depends on time, and the pencil is singular: the indices have no meaning.
    is_singular: bool = False
    #: Whether ker E depends on time, so that the pencil does not determine the index.
    has_moving_kernel: bool = False

    #: Whether the equations at one time determine derivatives and algebraic variables, as in the index-1 formulation.
    is_index_one_with_derivatives: bool = False
    #: Algebraic variables that algebraic equations determine at one time, and these equations, beside others.
    determined_variables: tuple[int, ...] = ()
    determining_equations: tuple[int, ...] = ()

    @property
    def determines_index(self) -> bool:
        """True if the pencil at a fixed time determines the index of the equations."""
        return not (self.is_singular or self.has_moving_kernel)

    @functools.cached_property
    def is_ode(self) -> bool:
        """True if E is regular: an ODE."""
        return self.projector is not None and not self.projector.any()

    @property
    def is_index_one(self) -> bool:
        """True if the algebraic equations determine the algebraic variables: index 1."""
        is_square = self.algebraic_variables and len(self.algebraic_variables) == len(self.algebraic_equations)
        return bool(is_square) and all(self.indices[j] == 1 for j in self.algebraic_variables)


def matrix_pencil(model: DescriptorModel) -> Pencil:
    """Return the matrix pencil of a model with its parameter values."""
    d, n = model.descriptor, int(model.descriptor.x.numel())
    E, F = ca.jacobian(d.residual, d.xdot), ca.jacobian(d.residual, d.x)
    pattern = ca.sparsify(E).sparsity()
    columns = tuple(j for j in range(n) if j not in set(pattern.get_col()))
    rows = tuple(i for i in range(n) if i not in set(pattern.row()))
    probe = Probe([d.x, d.xdot, d.t, d.k], seed=11, fixed={3: model.parameter_vector()})
    E_sample, F_sample = next(probe.evaluate(E, F, n_samples=1), None) or _sample_with_random_fill(probe, E, F, d)
    U, V, rank = _range_and_kernel_bases(E_sample, columns, rows)
    projector: np.ndarray | None = None
    if rank == n - len(columns):
        projector = _coordinate_projector(n, columns)
    elif not any(ca.depends_on(E, symbol) for symbol in (d.x, d.xdot, d.t)):
        projector = V[:, rank:] @ V[:, rank:].T
    is_time_dependent = ca.depends_on(ca.vertcat(ca.vec(E), ca.vec(F)), d.t)
    return Pencil(
        _variable_indices(E_sample, F_sample, U, V, rank),
        columns,
        rows,
        projector,
        is_time_dependent and _is_singular_pencil(E_sample, F_sample),
        rank < n and projector is None and bool(ca.depends_on(E, d.t)),
        _determines_derivatives(E_sample, F_sample, columns),
        *_determined_block(F_sample, np.array(ca.DM(ca.sparsify(F).sparsity())) != 0, columns, rows),
    )


def _determined_block(
    F: np.ndarray, pattern: np.ndarray, columns: tuple[int, ...], rows: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the algebraic variables that algebraic equations without other algebraic variables determine."""
    chosen, equations = list(columns), list(rows)
    while chosen and equations:
        others = [j for j in columns if j not in chosen]
        equations = [i for i in equations if pattern[i, chosen].any() and not pattern[i, others].any()]
        block = F[np.ix_(equations, chosen)]
        size = np.abs(block).max(axis=1, keepdims=True, initial=0.0)
        _, values, Vt = np.linalg.svd(block / np.where(size > 0, size, 1.0))
        kernel = Vt[numerical_rank(values, EXACT_RTOL) :]
        determined = [
            j for j, free in zip(chosen, np.abs(kernel).max(axis=0, initial=0.0) > 1e-9, strict=True) if not free
        ]
        if determined == chosen:
            return (tuple(chosen), tuple(equations)) if len(equations) == len(chosen) else ((), ())
        chosen = determined
    return (), ()


def _determines_derivatives(E: np.ndarray, F: np.ndarray, columns: tuple[int, ...]) -> bool:
    """Return whether the equations determine the derivatives of differential variables and the algebraic variables."""
    if not columns:
        return False
    matrix = E.copy()
    matrix[:, list(columns)] = F[:, list(columns)]
    return _equilibrated_rank(matrix) == len(E)


def _equilibrated_rank(matrix: np.ndarray) -> int:
    """Return the rank of a matrix after scaling of its rows and columns."""
    for axis in (1, 0):
        size = np.abs(matrix).max(axis=axis, keepdims=True)
        matrix = matrix / np.where(size > 0, size, 1.0)
    return numerical_rank(np.linalg.svd(matrix, compute_uv=False), EXACT_RTOL)


def _is_singular_pencil(E: np.ndarray, F: np.ndarray) -> bool:
    """Return whether ``a E + F`` is singular for all numbers a: here for two of them."""
    return max(_equilibrated_rank(a * E + F) for a in (1.2345, -0.6789)) < len(E)


def _sample_with_random_fill(probe: Probe, E: Expr, F: Expr, d: Descriptor) -> list[np.ndarray]:
    """Return E and F at a random state, with random numbers for entries that are not finite there.

    Used if no random state can be evaluated, for example for wheels that must touch their rails.
    """
    state, random = next(probe.points()), np.random.default_rng(12)
    parts = ca.Function("parts", [d.x, d.xdot, d.t, d.k], [ca.densify(E), ca.densify(F)])(*map(ca.DM, state))
    matrices = [np.array(part) for part in parts]
    return [np.where(np.isfinite(part), part, random.uniform(LOW, HIGH, part.shape)) for part in matrices]


def _coordinate_projector(n: int, columns: tuple[int, ...]) -> np.ndarray:
    return np.diag([1.0 if j in columns else 0.0 for j in range(n)])


def _range_and_kernel_bases(
    E: np.ndarray, columns: tuple[int, ...], rows: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray, int]:
    """Return orthogonal U, V and the rank r such that ``U^T E V`` is zero except in the first r rows and columns.

    If zero rows and columns account for the rank deficiency, U and V are permutations without roundoff.
    """
    n = len(E)
    scale = np.abs(E).max(axis=1, initial=0.0)
    _, values, Vt = np.linalg.svd(E / np.where(scale > 0, scale, 1.0)[:, None])  # row scaling: keeps small masses
    rank = numerical_rank(values, EXACT_RTOL)
    U = _permutation_to_end(n, rows) if len(rows) == n - rank else np.linalg.svd(E)[0]
    V = _permutation_to_end(n, columns) if len(columns) == n - rank else Vt.T
    return U, V, rank


def _permutation_to_end(n: int, last: tuple[int, ...]) -> np.ndarray:
    """Return the permutation matrix that moves these indices to the end."""
    return np.eye(n)[:, [*(i for i in range(n) if i not in last), *last]]


def _variable_indices(E: np.ndarray, F: np.ndarray, U: np.ndarray, V: np.ndarray, rank: int) -> tuple[int, ...]:
    n = len(E)
    if rank == n:
        return (1,) * n
    F_rotated, size = U.T @ F @ V, np.abs(U.T) @ np.abs(F) @ np.abs(V)
    F_rotated[np.abs(F_rotated) <= _ZERO_TOLERANCE * size] = 0.0
    # rows with E are multiplied by h to avoid overflow
    matrix = np.zeros((n, n))
    matrix[:rank, :rank] = (U.T @ E @ V)[:rank, :rank]
    matrix += np.where(np.arange(n)[:, None] < rank, _PERTURBATION_STEP, 1.0) * F_rotated
    try:
        response = V @ np.linalg.inv(matrix)[:, :rank]
    except np.linalg.LinAlgError:
        return (1,) * n
    norms = np.abs(response).max(axis=1, initial=0.0)
    degrees = np.log10(np.where(norms > 0, norms, 1.0)) / -np.log10(_PERTURBATION_STEP)
    return tuple(int(index) for index in 1 + np.maximum(np.round(degrees), 0))
