"""Structure of a port-Hamiltonian system and the check of its defining conditions (Symank 2025, def. 4.1)."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import ModelError
from livens.expressions.graph.roundoff import UNIT_ROUNDOFF, roundoff_bound
from livens.expressions.probe import Probe
from livens.types import Expr

#: Relative tolerance of user-defined numbers in the conditions; the roundoff of evaluation is added, bounded by running
#: error analysis.
TOLERANCE = 1e-12

#: Number of random states of the structure check.
N_SAMPLES = 6


@dataclass(frozen=True, eq=False)
class MechanicalConstraints:
    """Constraints of mechanical parts that the equations do not contain explicitly, as expressions.

    Position-level constraints, their time derivatives, and the velocities.
    """

    g: Any
    g_dot: Any
    v: Any

    def substitute(self, old: Expr, new: Expr) -> MechanicalConstraints:
        """Return the constraints with old symbols replaced by new expressions."""
        return MechanicalConstraints(*(ca.substitute(part, old, new) for part in (self.g, self.g_dot, self.v)))

    def concatenate(self, other: MechanicalConstraints | None) -> MechanicalConstraints:
        """Return the constraints of two systems."""
        if other is None:
            return self
        pairs = ((self.g, other.g), (self.g_dot, other.g_dot), (self.v, other.v))
        return MechanicalConstraints(*(ca.vertcat(a, b) for a, b in pairs))


@dataclass(frozen=True, eq=False)
class PHStructure:
    """pH-DAE structure: the matrices of a port-Hamiltonian system as expressions of the symbols x, t, k.

    `inputs` are the inputs of the ports as expressions of x, t, k; None for an open port.
    """

    x: Any
    t: Any
    k: Any
    H: Any
    z: Any
    E: Any
    r: Any
    J: Any
    R: Any
    B: Any
    P: Any
    S: Any
    N: Any
    inputs: tuple[Any, ...]
    mechanics: MechanicalConstraints | None = None

    @property
    def Gamma(self) -> Expr:
        """Skew-symmetric extended structure matrix ``[[J, B], [-B^T, N]]``."""
        return ca.blockcat([[self.J, self.B], [-self.B.T, self.N]])

    @property
    def W(self) -> Expr:
        """Symmetric positive semidefinite extended dissipation matrix ``[[R, P], [P^T, S]]``."""
        return ca.blockcat([[self.R, self.P], [self.P.T, self.S]])

    def matrices(self) -> list[Expr]:
        return [self.H, self.z, self.E, self.r, self.J, self.R, self.B, self.P, self.S, self.N]

    @functools.cached_property
    def _conditions(self) -> list[tuple[Any, Any]]:
        """Residual of each condition (for W: the matrix itself) and the magnitude of its terms."""
        gradient, time = ca.gradient(self.H, self.x), ca.gradient(self.H, self.t)
        return [
            (self.Gamma + self.Gamma.T, ca.fabs(self.Gamma) + ca.fabs(self.Gamma.T)),
            (self.W - self.W.T, ca.fabs(self.W) + ca.fabs(self.W.T)),
            (self.W, ca.fabs(self.W)),
            (gradient - self.E.T @ self.z, ca.fabs(gradient) + ca.fabs(self.E).T @ ca.fabs(self.z)),
            (time - ca.dot(self.z, self.r), ca.fabs(time) + ca.dot(ca.fabs(self.z), ca.fabs(self.r))),
        ]

    @functools.cached_property
    def conditions(self) -> ca.Function:
        """Function (x, t, k) of all conditions and magnitudes, followed by the energy."""
        outputs = [ca.densify(e) for condition in self._conditions for e in condition]
        return ca.Function("conditions", [self.x, self.t, self.k], [*outputs, self.H])

    @functools.cached_property
    def roundoff(self) -> ca.Function:
        """Roundoff bound of each condition. The expressions are long: used only if a condition seems violated."""
        arguments = [self.x, self.t, self.k]
        zero = [ca.SX.zeros(s.numel()) for s in arguments]
        bounds = []
        for residual, _ in self._conditions:
            flat = ca.Function("gap", arguments, [ca.densify(ca.vec(residual))])
            bounds.append(ca.reshape(UNIT_ROUNDOFF * roundoff_bound(flat, arguments, zero), *residual.shape))
        return ca.Function("rounding", arguments, bounds)


def sample_points(structure: PHStructure) -> Iterator[tuple[np.ndarray, float]]:
    """Yield random states and times for the structure check: half of them positive, half around zero."""
    for low in (0.5, -1.0):
        for x, t in Probe([structure.x, structure.t], seed=7, low=low).points(N_SAMPLES // 2):
            yield x.ravel(), float(np.abs(t).item())


def check_structure(structure: PHStructure, states: Sequence[str], ports: Sequence[str], k: np.ndarray) -> None:
    """Check the structure at random states. States at which it cannot be evaluated are skipped."""
    if not sum(check_at(structure, states, ports, x, t, k) for x, t in sample_points(structure)):
        raise ModelError(f"the model is not finite at any of {N_SAMPLES} random states between -1 and 1.5")


def check_at(
    structure: PHStructure, states: Sequence[str], ports: Sequence[str], x: np.ndarray, t: float, k: np.ndarray
) -> bool:
    """Check the structure at one point; return False if it cannot be evaluated, raise ModelError if it is violated."""
    *values, energy = (np.array(value) for value in structure.conditions(x, t, k))
    if not all(np.all(np.isfinite(value)) for value in (*values, energy)):
        return False
    residuals, tolerances = values[::2], [_tolerance(size) for size in values[1::2]]
    if _first_violation(residuals, tolerances, states, ports) is None:
        return True
    tolerances = [a + np.array(bound) for a, bound in zip(tolerances, structure.roundoff(x, t, k), strict=True)]
    violation = _first_violation(residuals, tolerances, states, ports)
    if violation is not None:
        raise ModelError(f"{violation} at {_point_label(states, x, t)}")
    return True


def passivity_violation(
    structure: PHStructure, states: Sequence[str], ports: Sequence[str], x: np.ndarray, t: float, k: np.ndarray
) -> str | None:
    """Return a message if the dissipation matrix W is not positive semidefinite at one point, else None."""
    values = [np.array(value) for value in structure.conditions(x, t, k)]
    w, tolerance = values[4], _tolerance(values[5])
    if not np.isfinite(w).all():
        return f"W is not finite at {_point_label(states, x, t)}"
    if _psd_violation(w, tolerance, states, ports) is None:
        return None
    violation = _psd_violation(w, tolerance + np.array(structure.roundoff(x, t, k)[2]), states, ports)
    return None if violation is None else f"{violation} at {_point_label(states, x, t)}"


def _first_violation(
    residuals: list[np.ndarray], tolerances: list[np.ndarray], states: Sequence[str], ports: Sequence[str]
) -> str | None:
    """Return a message for the first violated condition, or None."""
    n = len(states)
    skew, symmetric, gradient, time = (_largest_excess(residuals[i], tolerances[i]) for i in (0, 1, 3, 4))
    if skew is not None:
        a, b = _entry_label(skew, n, "JBN"), _entry_label(skew[::-1], n, "JBN")
        return f"{a[0]} is not skew: {a} + {b} is {residuals[0][skew]:.3g} instead of 0"
    if symmetric is not None:
        a, b = _entry_label(symmetric, n, "RPS"), _entry_label(symmetric[::-1], n, "RPS")
        return f"{a[0]} is not symmetric: {a} - {b} is {residuals[1][symmetric]:.3g} instead of 0"
    indefinite = _psd_violation(residuals[2], tolerances[2], states, ports)
    if indefinite is not None:
        return indefinite
    if gradient is not None:
        i = gradient[0]
        return f"the gradient of H is not E^T z: entry {i} (dH/d{states[i]}) differs by {residuals[3][gradient]:.3g}"
    return None if time is None else f"dH/dt is not z.r: it differs by {residuals[4][time]:.3g}"


def _tolerance(size: np.ndarray) -> np.ndarray:
    """Return the tolerance of a condition; for matrices such as ``A J A^T`` the roundoff scales with whole rows."""
    if size.shape[0] != size.shape[1]:
        return TOLERANCE * size
    largest = np.sqrt(size.max(axis=1, initial=0.0))
    return TOLERANCE * size + 64 * UNIT_ROUNDOFF * np.outer(largest, largest)


def _largest_excess(residual: np.ndarray, tolerance: np.ndarray) -> tuple[int, int] | None:
    excess = np.abs(residual) - tolerance
    if excess.max(initial=0.0) <= 0:
        return None
    i, j = np.unravel_index(int(np.argmax(excess)), excess.shape)
    return int(i), int(j)


def _psd_violation(w: np.ndarray, tolerance: np.ndarray, states: Sequence[str], ports: Sequence[str]) -> str | None:
    n = len(states)
    # tolerances of the entries are added to the diagonal (Gershgorin), scaled to be independent of units
    shifted = (w + w.T) / 2 + np.diag(tolerance.sum(axis=1))
    diagonal = np.diag(shifted)
    if np.any(diagonal < 0):
        i = int(np.argmin(diagonal))
        return f"{_psd_message(i, n)}: {_entry_label((i, i), n, 'RPS')} is {w[i, i]:.3g}"
    scale = np.where(diagonal > 0, 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 0.0)
    scaled = scale[:, None] * shifted * scale
    values, vectors = np.linalg.eigh(scaled)
    if not values.size or values[0] >= -1e-14 * values.size:
        return None
    worst = vectors[:, 0]
    i, j = sorted(divmod(int(np.argmin(np.outer(worst, worst) * scaled)), values.size))  # largest contribution
    direction = scale * worst / np.abs(scale * worst).max()
    names = [*states, *(f"u[{port}]" for port in ports)]
    components = ", ".join(f"{names[a]}: {direction[a]:.3g}" for a in np.flatnonzero(np.abs(direction) > 1e-3))
    return (
        f"{_psd_message(j, n)} because of {_entry_label((i, j), n, 'RPS')}: "
        f"the power lost along the efforts ({components}) is {direction @ w @ direction:.3g}"
    )


def _psd_message(i: int, n: int) -> str:
    return f"{'R' if i < n else 'W = [[R, P], [P^T, S]]'} is not positive semidefinite"


def _entry_label(index: tuple[int, int], n: int, blocks: str) -> str:
    """Return the label of an entry of an extended matrix in terms of the user's blocks."""
    i, j = index
    if i < n and j < n:
        return f"{blocks[0]}[{i}, {j}]"
    if i >= n and j >= n:
        return f"{blocks[2]}[{i - n}, {j - n}]"
    return f"{blocks[1]}[{min(i, j)}, {max(i, j) - n}]"


def _point_label(states: Sequence[str], x: np.ndarray, t: float) -> str:
    shown = [f"{name} = {value:.6g}" for name, value in zip(states[:8], x[:8], strict=True)]
    return ", ".join([*shown, *(["..."] if len(states) > 8 else []), f"t = {t:.6g}"])
