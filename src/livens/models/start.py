"""Consistent initial values of a System with dense matrices: checks, completion, projection."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from livens.errors import InputError
from livens.expressions.numbers import one_of, vector
from livens.expressions.stages import stage
from livens.models.balance import balanced
from livens.models.consistent import TOLERANCE
from livens.models.element_numbers import ElementNumbers
from livens.models.model import InitialState
from livens.models.redundancy import redundant_constraints
from livens.models.summed import Dynamics, dynamics
from livens.models.system import System

#: Reciprocal condition number above which a matrix is treated as regular.
_REGULAR = 1e-8
#: Masses below this fraction of the largest mass are treated as zero.
HARDLY = 1e-10
#: Relative step size of Gauss-Newton, in the max norm, below which stagnation is attributed to roundoff.
_ROUNDING = 1e-11
#: Maximum number of redundant constraints named in an error message.
_NAMED = 20


def initial_state(
    system: System,
    q0: Any,
    v0: Any,
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
    one_of("redundant", redundant, ("error", "remove", "auto"))
    q, v = vector("q0", q0, system.coordinates, "coordinate"), vector("v0", v0, system.coordinates, "coordinate")
    if system.large:
        stage(f"checking {system.m} constraints")
        from livens.models.large_start import large_state  # SciPy's sparse matrices take long to import

        return large_state(system, q, v, k, t0, project, redundant)
    d = dynamics(system)
    regular = _regular_start(system, d, q, v, t0, k)
    if regular is not None:
        return regular
    numbers = Numbers(d, t0, k)
    here = Here(*numbers.at_start(q, v))
    check_finite(here)
    if system.m:
        if project:
            q, v = nearest_state(numbers, system, q, v)
            here = Here(*numbers.at_start(q, v))
        check_consistent(system, numbers, here.g.ravel(), here.g_rate.ravel(), here.G, q, v)
    if not _definite(here.matrix[: system.n, : system.n]):
        q, v = balanced(system, q, v, t0, k, project, functools.partial(nearest_state, numbers, system))
        here = Here(*numbers.at_start(q, v))
    if redundant == "auto" or system.frames:
        dropped = redundant_constraints(system, q, v, numbers.slopes, functools.partial(onto_constraints, numbers))
        if dropped and redundant == "error":
            raise refused(system, dropped)
    else:
        dropped = _redundant(system, numbers, here.G, q, redundant)
    multipliers = _multipliers(system, here, dropped)
    return InitialState(t0, {"q": q, "v": v, "p": here.p.ravel(), "multipliers": multipliers}, dropped)


def _regular_start(
    system: System, d: Dynamics, q: np.ndarray, v: np.ndarray, t0: float, k: np.ndarray
) -> InitialState | None:
    """Return the state if the values are consistent and the KKT matrix is regular, otherwise None.

    A regular KKT matrix determines accelerations and multipliers uniquely: no constraint is redundant.
    """
    checks, p, A, b = d.at_regular_start(q, v, t0, k)
    position, velocity, norm, total = checks.ravel().tolist()
    if not (position <= TOLERANCE and velocity <= TOLERANCE and math.isfinite(total)):
        return None
    multipliers = np.zeros(0)
    if system.m:
        factors, _, found, info = lapack.dgesv(A, b)
        if info or not lapack.dgecon(factors, norm)[0] > _REGULAR:
            # masses and moments of inertia may differ by orders of magnitude: equilibrate before the rank decision
            weights = _weights(A, system.n)
            if weights is None:
                return None
            scaled = weights[:, None] * A * weights
            factors, _, found, info = lapack.dgesv(scaled, weights[:, None] * b)
            if info or not lapack.dgecon(factors, float(np.abs(scaled).sum(axis=0).max()))[0] > _REGULAR:
                return None
            found = weights[:, None] * found
        multipliers = found.ravel()[system.n :]
    elif not _definite(A):
        return None  # a coordinate may be massless
    return InitialState(t0, {"q": q, "v": v, "p": p.ravel(), "multipliers": multipliers})


def _weights(A: np.ndarray, n: int) -> np.ndarray | None:
    """Return symmetric scaling factors of the KKT matrix (unit masses and rows of G); None if a mass is negligible."""
    masses = A.diagonal()[:n]
    if not np.all(masses > HARDLY * masses.max()):
        return None
    weights = np.empty(len(A))
    weights[:n] = 1 / np.sqrt(masses)
    rows = A[n:, :n] * weights[:n]
    lengths = np.sqrt((rows * rows).sum(axis=1))
    if not np.all(lengths > 0):
        return None
    weights[n:] = 1 / lengths
    return weights


def _definite(M: np.ndarray) -> bool:
    """Return whether a matrix is positive definite, independent of the units of its rows."""
    factor, info = lapack.dpotrf(M)
    return not info and bool((factor.diagonal() ** 2 > _REGULAR * M.diagonal()).all())


class Here(NamedTuple):
    """Terms of the equations of motion at the initial state."""

    T: np.ndarray
    V: np.ndarray
    g: np.ndarray
    F: np.ndarray
    g_rate: np.ndarray
    G: np.ndarray
    p: np.ndarray
    matrix: np.ndarray  # of ``M a + G^T lam = f, G a = -c``
    right: np.ndarray


class Numbers:
    """Numeric evaluation of `EquationsOfMotion` at q and v, with dense matrices."""

    def __init__(self, d: Dynamics, t: float, k: np.ndarray) -> None:
        self.d, self._t, self._k = d, t, k

    def at_start(self, q: np.ndarray, v: np.ndarray) -> list[np.ndarray]:
        """Return the fields of `AssembledTerms`."""
        return self.d.at_start(q, v, self._t, self._k)

    def constraints(self, q: np.ndarray) -> np.ndarray:
        return self(self.d.g, q)

    def slopes(self, q: np.ndarray) -> np.ndarray:
        """Return the constraint Jacobian G."""
        return self.matrix(self.d.G, q)

    def position_slopes(self, q: np.ndarray) -> np.ndarray:
        """Return the Jacobian of the position constraints; rows of velocity-level constraints are zero."""
        return self.matrix(self.d.g_q, q)

    def rate(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the velocity-level residual of the constraints."""
        return self(self.d.velocity_constraint, q, v)

    def least(self, G: np.ndarray, r: np.ndarray) -> np.ndarray:
        """Return the minimum-norm least-squares solution of ``G x = r``.

        A complete orthogonal factorization (LAPACK gelsy) is about ten times faster than an SVD.
        """
        if not G.shape[0] or not np.isfinite(G).all():
            return np.asarray(np.linalg.pinv(G, rcond=1e-10) @ r)
        return np.asarray(linalg.lstsq(G, r, cond=1e-10, lapack_driver="gelsy", check_finite=False)[0])

    def matrix(self, expression: Any, q: np.ndarray, v: np.ndarray | None = None) -> np.ndarray:
        return self.d.evaluator(expression)(q, 0.0 if v is None else v, self._t, self._k)[0]

    def __call__(self, expression: Any, q: np.ndarray, v: np.ndarray | None = None) -> np.ndarray:
        return self.matrix(expression, q, v).ravel()


#: Evaluation of a system as one dense graph, or sparse per element type.
AnyNumbers = Numbers | ElementNumbers


def check_finite(here: Sequence[Any]) -> None:
    """Raise InputError if energies, constraints or forces, the first entries of `terms`, are not finite."""
    for name, values in zip(("kinetic energy", "potential energy", "constraints", "forces"), here, strict=False):
        if not np.isfinite(values).all():
            raise InputError(f"the {name} of the system cannot be evaluated at q0, v0: the result is not finite")


def _scale(G: Any, weights: np.ndarray) -> np.ndarray:
    """Return the scale of constraint residuals: 1 plus the magnitude of their terms."""
    return 1.0 + np.asarray(abs(G) @ np.abs(weights))


def check_consistent(
    system: System, numbers: AnyNumbers, g: np.ndarray, rate: np.ndarray, G: Any, q: np.ndarray, v: np.ndarray
) -> None:
    """Raise InputError if a constraint is violated at position or velocity level; propose consistent values."""
    for what, residual, weights, offered in (("position", g, q, "q0"), ("velocity", rate, v, "v0")):
        relative = np.abs(residual) / _scale(G, weights)
        if relative.max() > TOLERANCE:
            worst = int(np.argmax(relative))
            nearest = _nearest_offered(system, numbers, q, v, what)
            raise InputError(
                f"inconsistent initial values: constraint '{system.constraint_names[worst]}' is violated on {what} "
                f"level by {residual[worst]:.3g}; {nearest}pass project=True to start there"
                if nearest
                else f"inconsistent initial values: constraint '{system.constraint_names[worst]}' is violated on "
                f"{what} level by {residual[worst]:.3g}, and no consistent {offered} was found nearby"
            )


def _nearest_offered(system: System, numbers: AnyNumbers, q: np.ndarray, v: np.ndarray, what: str) -> str:
    try:
        position = nearest_position(numbers, q, system)
    except InputError:
        return ""
    name, values = ("q0", position) if what == "position" else ("v0", nearest_velocity(numbers, q, v))
    shown = ", ".join(f"{x:.9g}" for x in values[:12]) + (", ..." if values.size > 12 else "")
    return f"the nearest consistent {name} is ({shown}); "


def nearest_position(numbers: AnyNumbers, q: np.ndarray, system: System) -> np.ndarray:
    """Return the consistent position nearest to q: Gauss-Newton onto the constraints, then tangential steps."""
    position = onto_constraints(numbers, q)
    if position is None:
        residual = np.abs(numbers.constraints(q))
        raise InputError(
            "no consistent position was found near q0: constraint "
            f"'{system.constraint_names[int(np.argmax(residual))]}' is violated there by {residual.max():.3g}"
        )
    for _ in range(200):
        G, towards = numbers.position_slopes(position), q - position
        along = towards - numbers.least(G, G @ towards)
        if np.abs(along).max() <= 1e-15 * (1.0 + np.abs(position).max()):
            break
        tried = (onto_constraints(numbers, position + 0.5**i * along) for i in range(8))
        closer = [p for p in tried if p is not None and np.linalg.norm(p - q) < np.linalg.norm(towards)]
        # the best trial, not the first: at strong curvature full steps oscillate
        better = min(closer, key=lambda p: float(np.linalg.norm(p - q)), default=None)
        if better is None:
            break
        position = better
    return position


def nearest_state(numbers: AnyNumbers, system: System, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the consistent position nearest to q and the consistent velocity nearest to v there."""
    position = nearest_position(numbers, q, system) if system.m else q
    return position, nearest_velocity(numbers, position, v) if system.m else v


def onto_constraints(numbers: AnyNumbers, q: np.ndarray) -> np.ndarray | None:
    """Return a position on the constraints by Gauss-Newton iteration; None if it does not converge."""
    position, last = q.copy(), np.inf
    for _ in range(50):
        g, G = numbers.constraints(position), numbers.position_slopes(position)
        if not (np.isfinite(g).all() and np.isfinite(G.sum())):
            return None
        step = numbers.least(G, g)
        position = position - step
        size = float(np.abs(step).max() / (1.0 + np.abs(position).max()))
        if size <= 1e-15 or 0.5 * last < size < _ROUNDING:  # converged or stagnated at roundoff level
            break
        last = size
    residual = np.abs(numbers.constraints(position))
    return position if np.all(residual <= TOLERANCE * _scale(numbers.slopes(position), position)) else None


def nearest_velocity(numbers: AnyNumbers, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return the orthogonal projection of v onto the velocity-level constraints."""
    return np.asarray(v - numbers.least(numbers.slopes(q), numbers.rate(q, v)))


def _dependent_rows(G: np.ndarray) -> list[int]:
    """Return the indices of rows that are linear combinations of preceding rows."""
    lengths = np.sqrt((G * G).sum(axis=1))
    if G.shape[0] <= G.shape[1] and np.isfinite(G).all():
        # fast test: the diagonal of R contains the norms of the rows orthogonal to preceding rows
        rest = np.abs(lapack.dgeqrf(G.T)[0].diagonal())
        if np.all(rest > 1e-6 * np.maximum(lengths, 1e-300)):
            return []
    kept: list[np.ndarray] = []
    dependent = []
    for i, row in enumerate(G):
        rest = row.copy()
        for _ in range(2):  # reorthogonalization: twice is enough
            for direction in kept:
                rest = rest - direction * (direction @ rest)
        length = np.linalg.norm(rest)
        if length <= 1e-9 * max(float(np.linalg.norm(row)), 1e-300):
            dependent.append(i)
        else:
            kept.append(rest / length)
    return dependent


def _redundant(system: System, numbers: Numbers, G: np.ndarray, q: np.ndarray, redundant: str) -> tuple[int, ...]:
    """Return the redundant constraints near q. Rank deficiency at a singular position only is ignored."""
    if not system.m:
        return ()
    dependent = still_dependent(system, numbers, set(_dependent_rows(G)), q, _dependent_rows)
    if not dependent:
        return ()
    if redundant == "remove":
        return tuple(sorted(dependent))
    raise refused(system, dependent)


def still_dependent(
    system: System, numbers: AnyNumbers, dependent: set[int], q: np.ndarray, rows: Callable[[Any], Sequence[int]]
) -> set[int]:
    """Return the rows that stay dependent at random consistent positions near q."""
    random = np.random.default_rng(3)
    for _ in range(3):
        if not dependent:
            break
        shift = 1e-2 * (1.0 + np.abs(q)) * random.standard_normal(q.size)
        try:
            nearby = nearest_position(numbers, q + shift, system)
        except InputError:
            continue
        dependent = dependent & set(rows(numbers.slopes(nearby)))
    return dependent


def refused(system: System, dependent: Collection[int]) -> InputError:
    """Return the error for redundant constraints, with the names of at most `_MAX_NAMED` of them."""
    names = ", ".join(f"'{system.constraint_names[i]}'" for i in sorted(dependent)[:_NAMED])
    names += f" and {len(dependent) - _NAMED} more" if len(dependent) > _NAMED else ""
    return InputError(
        f"redundant constraints: {names} follow{'s' if len(dependent) == 1 else ''} from the others, so the "
        "multipliers are not determined; leave them out of the model, or pass redundant='remove'"
    )


def _multipliers(system: System, here: Here, dropped: Sequence[int]) -> np.ndarray:
    """Return the initial multipliers (least squares: a singular mass matrix may leave some undetermined)."""
    if not system.m:
        return np.zeros(0)
    A, b = here.matrix, here.right.ravel()
    if not (math.isfinite(A.sum() + b.sum()) or (np.isfinite(A).all() and np.isfinite(b).all())):
        raise InputError("accelerations cannot be evaluated at q0, v0: the result is not finite")
    keep = [i for i in range(A.shape[0]) if i - system.n not in dropped]
    solution = np.zeros(A.shape[0])
    left, right = A[np.ix_(keep, keep)], b[keep]
    factors, _, found, info = lapack.dgesv(left, right)
    if info or not lapack.dgecon(factors, np.abs(left).sum(axis=0).max(initial=0.0))[0] > _REGULAR:
        found = np.linalg.lstsq(left, right, rcond=None)[0]
    solution[keep] = found.ravel()
    return solution[system.n :]
