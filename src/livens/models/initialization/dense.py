"""Consistent initial values of a System with dense matrices: checks, completion, projection."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from livens.errors import InputError
from livens.models import lapack
from livens.models.base import InitialState
from livens.models.equations_of_motion import EquationsOfMotion, equations_of_motion
from livens.models.initialization.derivative_array import TOLERANCE
from livens.models.initialization.massless import check_massless_equilibrium
from livens.models.initialization.redundancy import cached_redundancy, redundancy_error, redundant_constraints
from livens.models.numeric_assembly import NumericAssembly
from livens.models.system import System
from livens.progress import report_progress
from livens.types import ArrayLike, Expr, FloatArray
from livens.validation import check_choice, check_vector

#: Reciprocal condition number above which a matrix is treated as regular.
RCOND_REGULAR = 1e-8
#: Masses below this fraction of the largest mass are treated as zero.
NEGLIGIBLE_MASS = 1e-10
#: Relative step size of Gauss-Newton, in the max norm, below which stagnation is attributed to roundoff.
_STAGNATION = 1e-11


def initial_state(
    system: System,
    q0: ArrayLike,
    v0: ArrayLike,
    k: np.ndarray,
    *,
    t0: float = 0.0,
    project: bool = False,
    redundant: str = "error",
) -> InitialState:
    """Return the consistent, complete initial state of a system.

    `project` replaces inconsistent values by the nearest consistent state instead of raising an error. `redundant` is
    the treatment of redundant constraints: "error", "remove" or "auto", which tests for them off a singular
    configuration.
    """
    check_choice("redundant", redundant, ("error", "remove", "auto"))
    q, v = (
        check_vector("q0", q0, system.coordinates, "coordinate"),
        check_vector("v0", v0, system.coordinates, "coordinate"),
    )
    if system.uses_sparse_path:
        report_progress(f"checking {system.m} constraints")
        from livens.models.initialization.sparse import (
            sparse_initial_state,  # SciPy's sparse matrices take long to import
        )

        return sparse_initial_state(system, q, v, k, t0, project, redundant)
    d = equations_of_motion(system)
    fast_state = _fast_path(system, d, q, v, t0, k)
    if fast_state is not None:
        return fast_state
    assembly = DenseAssembly(d, t0, k)
    terms = AssembledTerms(*assembly.assemble(q, v))
    check_finite(terms)
    if system.controller_states:
        v = _with_state_rates(system, terms.g_dot.ravel(), v)
        terms = AssembledTerms(*assembly.assemble(q, v))
    if system.m:
        if project:
            q, v = project_state(assembly, system, q, v)
            terms = AssembledTerms(*assembly.assemble(q, v))
        check_consistent(system, assembly, terms.g.ravel(), terms.g_dot.ravel(), terms.G, q, v)
    if not _is_positive_definite(terms.kkt_matrix[: system.n, : system.n]):
        q, v = check_massless_equilibrium(
            system, q, v, t0, k, project, functools.partial(project_state, assembly, system)
        )
        terms = AssembledTerms(*assembly.assemble(q, v))
    if redundant == "auto" or system.frames:
        to_constraints = functools.partial(gauss_newton_to_constraints, assembly)
        find = functools.partial(redundant_constraints, system, q, v, assembly.constraint_jacobian, to_constraints)
        removed = cached_redundancy(system, (q, v, k, t0), redundant, find)
        if removed and redundant == "error":
            raise redundancy_error(system, removed)
    else:
        removed = _redundant_constraints(system, assembly, terms.G, q, redundant)
    multipliers = _initial_multipliers(system, terms, removed)
    return InitialState(t0, {"q": q, "v": v, "p": terms.p.ravel(), "multipliers": multipliers}, removed)


def _with_state_rates(system: System, residual: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return velocities with the rates of controller states that their constraints ``rate - f = residual`` demand.

    No body moves differently: the rates depend on inputs and parameters, which may change between runs.
    """
    v = np.array(v)
    for coordinate, row in system.controller_states:
        v[coordinate] -= residual[row]
    return v


def _fast_path(
    system: System, d: EquationsOfMotion, q: np.ndarray, v: np.ndarray, t0: float, k: np.ndarray
) -> InitialState | None:
    """Return the state if the values are consistent and the KKT matrix is regular, otherwise None.

    A regular KKT matrix determines accelerations and multipliers uniquely: no constraint is redundant.
    """
    checks, p, A, b = d.fast_initial_state_evaluator(q, v, t0, k)
    position, velocity, norm, checksum = checks.ravel().tolist()
    if not (position <= TOLERANCE and velocity <= TOLERANCE and math.isfinite(checksum)):
        return None
    multipliers = np.zeros(0)
    if system.m:
        factors, _, solution, info = lapack.dgesv(A, b)
        if info or not lapack.dgecon(factors, norm)[0] > RCOND_REGULAR:
            # masses and moments of inertia may differ by orders of magnitude: equilibrate before the rank decision
            weights = _equilibration(A, system.n)
            if weights is None:
                return None
            scaled = weights[:, None] * A * weights
            factors, _, solution, info = lapack.dgesv(scaled, weights[:, None] * b)
            if info or not lapack.dgecon(factors, float(np.abs(scaled).sum(axis=0).max()))[0] > RCOND_REGULAR:
                return None
            solution = weights[:, None] * solution
        multipliers = solution.ravel()[system.n :]
    elif not _is_positive_definite(A):
        return None  # a coordinate may be massless
    return InitialState(t0, {"q": q, "v": v, "p": p.ravel(), "multipliers": multipliers})


def _equilibration(A: np.ndarray, n: int) -> np.ndarray | None:
    """Return symmetric scaling factors of the KKT matrix (unit masses and rows of G); None if a mass is negligible."""
    masses = A.diagonal()[:n]
    if not np.all(masses > NEGLIGIBLE_MASS * masses.max()):
        return None
    weights = np.empty(len(A))
    weights[:n] = 1 / np.sqrt(masses)
    scaled_G = A[n:, :n] * weights[:n]
    lengths = np.sqrt((scaled_G * scaled_G).sum(axis=1))
    if not np.all(lengths > 0):
        return None
    weights[n:] = 1 / lengths
    return weights


def _is_positive_definite(M: np.ndarray) -> bool:
    """Return whether a matrix is positive definite, independent of the units of its rows."""
    factor, info = lapack.dpotrf(M)
    return not info and bool((factor.diagonal() ** 2 > RCOND_REGULAR * M.diagonal()).all())


class AssembledTerms(NamedTuple):
    """Terms of the equations of motion at the initial state."""

    T: np.ndarray
    V: np.ndarray
    g: np.ndarray
    F: np.ndarray
    g_dot: np.ndarray
    G: np.ndarray
    p: np.ndarray
    kkt_matrix: np.ndarray  # of ``M a + G^T lam = f, G a = -c``
    kkt_rhs: np.ndarray


class DenseAssembly:
    """Numeric evaluation of `EquationsOfMotion` at q and v, with dense matrices."""

    def __init__(self, d: EquationsOfMotion, t: float, k: np.ndarray) -> None:
        self.d, self._t, self._k = d, t, k

    def assemble(self, q: np.ndarray, v: np.ndarray) -> list[np.ndarray]:
        """Return the fields of `AssembledTerms`."""
        return self.d.initial_state_evaluator(q, v, self._t, self._k)

    def constraints(self, q: np.ndarray) -> np.ndarray:
        return self(self.d.g, q)

    def constraint_jacobian(self, q: np.ndarray) -> np.ndarray:
        """Return the constraint Jacobian G."""
        return self.matrix(self.d.G, q)

    def position_jacobian(self, q: np.ndarray) -> np.ndarray:
        """Return the Jacobian of the position constraints; rows of velocity-level constraints are zero."""
        return self.matrix(self.d.G_position, q)

    def constraint_velocity(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the velocity-level residual of the constraints."""
        return self(self.d.velocity_constraint, q, v)

    def min_norm_solve(self, G: np.ndarray, r: np.ndarray) -> np.ndarray:
        """Return the minimum-norm least-squares solution of ``G x = r``.

        A complete orthogonal factorization (LAPACK gelsy) is about ten times faster than an SVD.
        """
        if not G.shape[0] or not np.isfinite(G).all():
            return np.asarray(np.linalg.pinv(G, rcond=1e-10) @ r)
        return lapack.least_squares(G, r, 1e-10)

    def matrix(self, expression: Expr, q: np.ndarray, v: np.ndarray | None = None) -> np.ndarray:
        return self.d.evaluator(expression)(q, 0.0 if v is None else v, self._t, self._k)[0]

    def __call__(self, expression: Any, q: np.ndarray, v: np.ndarray | None = None) -> np.ndarray:
        return self.matrix(expression, q, v).ravel()


#: Evaluation of a system as one dense graph, or sparse per element type.
Assembly = DenseAssembly | NumericAssembly


def check_finite(terms: Sequence[Any]) -> None:
    """Raise InputError if energies, constraints or forces, the first entries of `terms`, are not finite."""
    for name, values in zip(("kinetic energy", "potential energy", "constraints", "forces"), terms, strict=False):
        if not np.isfinite(values).all():
            raise InputError(f"the {name} of the system cannot be evaluated at q0, v0: the result is not finite")


def _residual_scale(G: FloatArray, weights: np.ndarray) -> np.ndarray:
    """Return the scale of constraint residuals: 1 plus the magnitude of their terms."""
    return 1.0 + np.asarray(abs(G) @ np.abs(weights))


def check_consistent(
    system: System, assembly: Assembly, g: np.ndarray, g_dot: np.ndarray, G: Any, q: np.ndarray, v: np.ndarray
) -> None:
    """Raise InputError if a constraint is violated at position or velocity level; propose consistent values."""
    for level, residual, weights, argument in (("position", g, q, "q0"), ("velocity", g_dot, v, "v0")):
        relative = np.abs(residual) / _residual_scale(G, weights)
        if relative.max() > TOLERANCE:
            worst = int(np.argmax(relative))
            hint = _consistent_hint(system, assembly, q, v, level)
            raise InputError(
                f"inconsistent initial values: constraint '{system.constraint_names[worst]}' is violated on {level} "
                f"level by {residual[worst]:.3g}; {hint}pass project=True to start there"
                if hint
                else f"inconsistent initial values: constraint '{system.constraint_names[worst]}' is violated on "
                f"{level} level by {residual[worst]:.3g}, and no consistent {argument} was found nearby"
            )


def _consistent_hint(system: System, assembly: Assembly, q: np.ndarray, v: np.ndarray, level: str) -> str:
    try:
        position = project_position(assembly, q, system)
    except InputError:
        return ""
    name, values = ("q0", position) if level == "position" else ("v0", project_velocity(assembly, q, v))
    shown = ", ".join(f"{x:.9g}" for x in values[:12]) + (", ..." if values.size > 12 else "")
    return f"the nearest consistent {name} is ({shown}); "


def project_position(assembly: Assembly, q: np.ndarray, system: System) -> np.ndarray:
    """Return the consistent position nearest to q: Gauss-Newton onto the constraints, then tangential steps."""
    position = gauss_newton_to_constraints(assembly, q)
    if position is None:
        residual = np.abs(assembly.constraints(q))
        raise InputError(
            "no consistent position was found near q0: constraint "
            f"'{system.constraint_names[int(np.argmax(residual))]}' is violated there by {residual.max():.3g}"
        )
    for _ in range(200):
        G, direction = assembly.position_jacobian(position), q - position
        tangential = direction - assembly.min_norm_solve(G, G @ direction)
        if np.abs(tangential).max() <= 1e-15 * (1.0 + np.abs(position).max()):
            break
        trials = (gauss_newton_to_constraints(assembly, position + 0.5**i * tangential) for i in range(8))
        candidates = [p for p in trials if p is not None and np.linalg.norm(p - q) < np.linalg.norm(direction)]
        # the best trial, not the first: at strong curvature full steps oscillate
        best = min(candidates, key=lambda p: float(np.linalg.norm(p - q)), default=None)
        if best is None:
            break
        position = best
    return position


def project_state(assembly: Assembly, system: System, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the consistent position nearest to q and the consistent velocity nearest to v there."""
    position = project_position(assembly, q, system) if system.m else q
    return position, project_velocity(assembly, position, v) if system.m else v


def gauss_newton_to_constraints(assembly: Assembly, q: np.ndarray) -> np.ndarray | None:
    """Return a position on the constraints by Gauss-Newton iteration; None if it does not converge."""
    position, previous_size = q.copy(), np.inf
    for _ in range(50):
        g, G = assembly.constraints(position), assembly.position_jacobian(position)
        if not (np.isfinite(g).all() and np.isfinite(G.sum())):
            return None
        step = assembly.min_norm_solve(G, g)
        position = position - step
        size = float(np.abs(step).max() / (1.0 + np.abs(position).max()))
        if size <= 1e-15 or 0.5 * previous_size < size < _STAGNATION:  # converged or stagnated at roundoff level
            break
        previous_size = size
    residual = np.abs(assembly.constraints(position))
    return (
        position
        if np.all(residual <= TOLERANCE * _residual_scale(assembly.constraint_jacobian(position), position))
        else None
    )


def project_velocity(assembly: Assembly, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return the orthogonal projection of v onto the velocity-level constraints."""
    return np.asarray(v - assembly.min_norm_solve(assembly.constraint_jacobian(q), assembly.constraint_velocity(q, v)))


def dependent_rows(G: np.ndarray) -> list[int]:
    """Return the indices of rows that are linear combinations of preceding rows."""
    lengths = np.sqrt((G * G).sum(axis=1))
    if G.shape[0] <= G.shape[1] and np.isfinite(G).all():
        # fast test: the diagonal of R contains the norms of the rows orthogonal to preceding rows
        remainder = np.abs(lapack.dgeqrf(G.T)[0].diagonal())
        if np.all(remainder > 1e-6 * np.maximum(lengths, 1e-300)):
            return []
    basis: list[np.ndarray] = []
    dependent = []
    for i, row in enumerate(G):
        remainder = row.copy()
        for _ in range(2):  # reorthogonalization: twice is enough
            for direction in basis:
                remainder = remainder - direction * (direction @ remainder)
        length = np.linalg.norm(remainder)
        if length <= 1e-9 * max(float(np.linalg.norm(row)), 1e-300):
            dependent.append(i)
        else:
            basis.append(remainder / length)
    return dependent


def _redundant_constraints(
    system: System, assembly: DenseAssembly, G: np.ndarray, q: np.ndarray, policy: str
) -> tuple[int, ...]:
    """Return the redundant constraints near q. Rank deficiency at a singular position only is ignored."""
    if not system.m:
        return ()
    dependent = generically_dependent(system, assembly, set(dependent_rows(G)), q, dependent_rows)
    if not dependent:
        return ()
    if policy == "remove":
        return tuple(sorted(dependent))
    raise redundancy_error(system, dependent)


def generically_dependent(
    system: System,
    assembly: Assembly,
    dependent: set[int],
    q: np.ndarray,
    find_dependent_rows: Callable[[Any], Sequence[int]],
) -> set[int]:
    """Return the rows that stay dependent at random consistent positions near q."""
    random = np.random.default_rng(3)
    for _ in range(3):
        if not dependent:
            break
        shift = 1e-2 * (1.0 + np.abs(q)) * random.standard_normal(q.size)
        try:
            nearby = project_position(assembly, q + shift, system)
        except InputError:
            continue
        dependent = dependent & set(find_dependent_rows(assembly.constraint_jacobian(nearby)))
    return dependent


def _initial_multipliers(system: System, terms: AssembledTerms, removed: Sequence[int]) -> np.ndarray:
    """Return the initial multipliers (least squares: a singular mass matrix may leave some undetermined)."""
    if not system.m:
        return np.zeros(0)
    A, b = terms.kkt_matrix, terms.kkt_rhs.ravel()
    if not (math.isfinite(A.sum() + b.sum()) or (np.isfinite(A).all() and np.isfinite(b).all())):
        raise InputError("accelerations cannot be evaluated at q0, v0: the result is not finite")
    keep = [i for i in range(A.shape[0]) if i - system.n not in removed]
    solution = np.zeros(A.shape[0])
    matrix, rhs = A[np.ix_(keep, keep)], b[keep]
    factors, _, values, info = lapack.dgesv(matrix, rhs)
    if info or not lapack.dgecon(factors, np.abs(matrix).sum(axis=0).max(initial=0.0))[0] > RCOND_REGULAR:
        values = np.linalg.lstsq(matrix, rhs, rcond=None)[0]
    solution[keep] = values.ravel()
    return solution[system.n :]
