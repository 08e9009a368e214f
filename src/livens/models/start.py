"""Initial values: checked, completed, and on request moved to the nearest consistent state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from livens.errors import InputError
from livens.models.model import InitialState
from livens.models.summed import Dynamics, dynamics
from livens.models.system import System

#: Constraint residuals up to this size, relative to what enters them, count as rounding of the given values.
TOLERANCE = 1e-10


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
    """Check and complete initial values.

    `project` moves them to the nearest consistent state instead of refusing them. `redundant` says what to do with
    constraints that follow from others: "error" or "remove".
    """
    if redundant not in ("error", "remove"):
        raise InputError(f"redundant must be 'error' or 'remove', got {redundant!r}")
    q, v = vector("q0", q0, system), vector("v0", v0, system)
    d = dynamics(system)
    numbers = Numbers(d, t0, k)
    _check_finite(system, numbers, q, v)
    if system.m:
        if project:
            q = nearest_position(numbers, q, system)
            v = nearest_velocity(numbers, q, v)
        _check_consistent(system, numbers, q, v)
    dropped = _redundant(system, numbers, q, redundant)
    p = numbers(d.fibre_derivative, q, v)
    multipliers = _multipliers(system, numbers, q, v, dropped)
    return InitialState(t0, {"q": q, "v": v, "p": p, "multipliers": multipliers}, dropped)


def vector(name: str, value: Any, system: System) -> np.ndarray:
    """A vector of one number per coordinate, or a sentence that says why not."""
    if value is None:
        raise InputError(f"{name} is missing: give one number per coordinate ({', '.join(system.coordinates)})")
    try:
        numbers = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be {system.n} numbers, got {value!r}") from None
    if numbers.shape != (system.n,):
        got = f"{numbers.size} numbers" if numbers.ndim == 1 else f"an array of shape {numbers.shape}"
        raise InputError(f"{name} must be {system.n} numbers (one per coordinate), got {got}")
    bad = np.flatnonzero(~np.isfinite(numbers))
    if bad.size:
        raise InputError(f"{name} must be finite, but {name}[{system.coordinates[bad[0]]}] is {numbers[bad[0]]}")
    return numbers


class Numbers:
    """Expressions of a Dynamics, evaluated at q and v."""

    def __init__(self, d: Dynamics, t: float, k: np.ndarray) -> None:
        self.d, self._t, self._k = d, t, k
        # expressions are held too: the identity of one that is gone may be given to another
        self._cache: dict[int, tuple[Any, Any]] = {}

    def matrix(self, expression: Any, q: np.ndarray, v: np.ndarray | None = None) -> np.ndarray:
        if id(expression) not in self._cache:
            self._cache[id(expression)] = expression, self.d.function(expression)
        zero = np.zeros(q.size)
        return np.array(self._cache[id(expression)][1](q, zero if v is None else v, zero, self._t, self._k))

    def __call__(self, expression: Any, q: np.ndarray, v: np.ndarray | None = None) -> np.ndarray:
        return self.matrix(expression, q, v).ravel()


def _check_finite(system: System, numbers: Numbers, q: np.ndarray, v: np.ndarray) -> None:
    d = numbers.d
    for name, expression in {"kinetic energy": d.T, "potential energy": d.V, "constraints": d.g, "forces": d.F}.items():
        if not np.all(np.isfinite(numbers(expression, q, v))):
            raise InputError(f"the {name} of the system cannot be evaluated at q0, v0: the result is not finite")


def _scale(numbers: Numbers, q: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """What a constraint residual is measured against: the size of the terms that enter it."""
    return 1.0 + np.asarray(np.abs(numbers.matrix(numbers.d.G, q)) @ np.abs(weights))


def _check_consistent(system: System, numbers: Numbers, q: np.ndarray, v: np.ndarray) -> None:
    d = numbers.d
    for what, residual, weights, offered in (
        ("position", numbers(d.g, q), q, "q0"),
        ("velocity", numbers(d.velocity_constraint, q, v), v, "v0"),
    ):
        relative = np.abs(residual) / _scale(numbers, q, weights)
        worst = int(np.argmax(relative))
        if relative[worst] > TOLERANCE:
            nearest = _nearest_offered(system, numbers, q, v, what)
            raise InputError(
                f"inconsistent initial values: constraint '{system.constraint_names[worst]}' is violated on {what} "
                f"level by {residual[worst]:.3g}; {nearest}pass project=True to start there"
                if nearest
                else f"inconsistent initial values: constraint '{system.constraint_names[worst]}' is violated on "
                f"{what} level by {residual[worst]:.3g}, and no consistent {offered} was found nearby"
            )


def _nearest_offered(system: System, numbers: Numbers, q: np.ndarray, v: np.ndarray, what: str) -> str:
    try:
        position = nearest_position(numbers, q, system)
    except InputError:
        return ""
    name, values = ("q0", position) if what == "position" else ("v0", nearest_velocity(numbers, q, v))
    shown = ", ".join(f"{x:.9g}" for x in values[:12]) + (", ..." if values.size > 12 else "")
    return f"the nearest consistent {name} is ({shown}); "


def nearest_position(numbers: Numbers, q: np.ndarray, system: System) -> np.ndarray:
    """The consistent position nearest to q: onto the constraints, then along them as long as that comes closer."""
    position = onto_constraints(numbers, q)
    if position is None:
        residual = np.abs(numbers(numbers.d.g, q))
        raise InputError(
            "no consistent position was found near q0: constraint "
            f"'{system.constraint_names[int(np.argmax(residual))]}' is violated there by {residual.max():.3g}"
        )
    for _ in range(200):
        G, towards = numbers.matrix(numbers.d.G, position), q - position
        along = towards - np.linalg.pinv(G, rcond=1e-10) @ (G @ towards)
        if np.abs(along).max() <= 1e-15 * (1.0 + np.abs(position).max()):
            break
        tried = (onto_constraints(numbers, position + 0.5**i * along) for i in range(8))
        closer = (p for p in tried if p is not None and np.linalg.norm(p - q) < np.linalg.norm(towards))
        better = next(closer, None)
        if better is None:
            break
        position = better
    return position


def onto_constraints(numbers: Numbers, q: np.ndarray) -> np.ndarray | None:
    """Gauss-Newton steps onto the constraints, or None if they lead nowhere."""
    d, position = numbers.d, q.copy()
    for _ in range(50):
        g, G = numbers(d.g, position), numbers.matrix(d.G, position)
        if not (np.all(np.isfinite(g)) and np.all(np.isfinite(G))):
            return None
        step = np.linalg.pinv(G, rcond=1e-10) @ g
        position = position - step
        if np.abs(step).max() <= 1e-15 * (1.0 + np.abs(position).max()):
            break
    residual = np.abs(numbers(d.g, position))
    return position if np.all(residual <= TOLERANCE * _scale(numbers, position, position)) else None


def nearest_velocity(numbers: Numbers, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The consistent velocity nearest to v."""
    d = numbers.d
    G = numbers.matrix(d.G, q)
    return np.asarray(v - np.linalg.pinv(G, rcond=1e-10) @ numbers(d.velocity_constraint, q, v))


def _dependent_rows(G: np.ndarray) -> list[int]:
    """Rows that follow from the rows before them."""
    kept: list[np.ndarray] = []
    dependent = []
    for i, row in enumerate(G):
        rest = row.copy()
        for _ in range(2):  # twice is enough
            for direction in kept:
                rest = rest - direction * (direction @ rest)
        length = np.linalg.norm(rest)
        if length <= 1e-9 * max(float(np.linalg.norm(row)), 1e-300):
            dependent.append(i)
        else:
            kept.append(rest / length)
    return dependent


def _redundant(system: System, numbers: Numbers, q: np.ndarray, redundant: str) -> tuple[int, ...]:
    """Constraints that follow from others near q. A position that is merely singular is not counted."""
    if not system.m:
        return ()
    dependent = set(_dependent_rows(numbers.matrix(numbers.d.G, q)))
    random = np.random.default_rng(3)
    for _ in range(3):
        if not dependent:
            return ()
        shift = 1e-2 * (1.0 + np.abs(q)) * random.standard_normal(q.size)
        try:
            nearby = nearest_position(numbers, q + shift, system)
        except InputError:
            continue
        dependent &= set(_dependent_rows(numbers.matrix(numbers.d.G, nearby)))
    if not dependent:
        return ()
    names = ", ".join(f"'{system.constraint_names[i]}'" for i in sorted(dependent))
    if redundant == "remove":
        return tuple(sorted(dependent))
    raise InputError(
        f"redundant constraints: {names} follow{'s' if len(dependent) == 1 else ''} from the others, so the "
        "multipliers are not determined; leave them out of the model, or pass redundant='remove'"
    )


def _multipliers(system: System, numbers: Numbers, q: np.ndarray, v: np.ndarray, dropped: Sequence[int]) -> np.ndarray:
    """Multipliers from the accelerations at the start (least squares: a singular mass may leave some open)."""
    if not system.m:
        return np.zeros(0)
    matrix, right = numbers.d.acceleration_system
    A, b = numbers.matrix(matrix, q, v), numbers(right, q, v)
    keep = [i for i in range(A.shape[0]) if i - system.n not in dropped]
    if not (np.all(np.isfinite(A)) and np.all(np.isfinite(b))):
        raise InputError("accelerations cannot be evaluated at q0, v0: the result is not finite")
    solution = np.zeros(A.shape[0])
    solution[keep] = np.linalg.lstsq(A[np.ix_(keep, keep)], b[keep], rcond=None)[0]
    return solution[system.n :]
