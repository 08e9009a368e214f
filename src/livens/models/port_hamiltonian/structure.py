"""Structure of a port-Hamiltonian system and the check of its defining conditions (S002 def. 4.1)."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import ModelError
from livens.expressions.graph.roundoff import UNIT, roundoff_bound
from livens.expressions.probe import Probe

#: Relative tolerance of user-defined numbers in the conditions; the roundoff of evaluation is added, bounded by running
#: error analysis.
TOLERANCE = 1e-12

#: Number of random states of the structure check.
SAMPLES = 6


@dataclass(frozen=True, eq=False)
class Mechanics:
    """Constraints of mechanical parts that the equations do not contain explicitly, as expressions.

    Position-level constraints, their time derivatives, and the velocities.
    """

    g: Any
    rate: Any
    v: Any

    def at(self, old: Any, new: Any) -> Mechanics:
        """Return the constraints with old symbols replaced by new expressions."""
        return Mechanics(*(ca.substitute(part, old, new) for part in (self.g, self.rate, self.v)))

    def beside(self, other: Mechanics | None) -> Mechanics:
        """Return the constraints of two systems."""
        if other is None:
            return self
        pairs = ((self.g, other.g), (self.rate, other.rate), (self.v, other.v))
        return Mechanics(*(ca.vertcat(one, two) for one, two in pairs))


@dataclass(frozen=True, eq=False)
class Structure:
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
    laws: tuple[Any, ...]
    mechanics: Mechanics | None = None

    @property
    def Gamma(self) -> Any:
        """Skew-symmetric extended structure matrix ``[[J, B], [-B^T, N]]``."""
        return ca.blockcat([[self.J, self.B], [-self.B.T, self.N]])

    @property
    def W(self) -> Any:
        """Symmetric positive semidefinite extended dissipation matrix ``[[R, P], [P^T, S]]``."""
        return ca.blockcat([[self.R, self.P], [self.P.T, self.S]])

    def matrices(self) -> list[Any]:
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
    def rounding(self) -> ca.Function:
        """Roundoff bound of each condition. The expressions are long: used only if a condition seems violated."""
        at = [self.x, self.t, self.k]
        zero = [ca.SX.zeros(s.numel()) for s in at]
        bounds = []
        for gap, _ in self._conditions:
            flat = ca.Function("gap", at, [ca.densify(ca.vec(gap))])
            bounds.append(ca.reshape(UNIT * roundoff_bound(flat, at, zero), *gap.shape))
        return ca.Function("rounding", at, bounds)


def random_points(structure: Structure) -> Iterator[tuple[np.ndarray, float]]:
    """Yield random states and times for the structure check: half of them positive, half around zero."""
    for low in (0.5, -1.0):
        for x, t in Probe([structure.x, structure.t], seed=7, low=low).states(SAMPLES // 2):
            yield x.ravel(), float(np.abs(t).item())


def check_everywhere(structure: Structure, states: Sequence[str], ports: Sequence[str], k: np.ndarray) -> None:
    """Check the structure at random states. States at which it cannot be evaluated are skipped."""
    if not sum(check(structure, states, ports, x, t, k) for x, t in random_points(structure)):
        raise ModelError(f"the model is not finite at any of {SAMPLES} random states between -1 and 1.5")


def check(
    structure: Structure, states: Sequence[str], ports: Sequence[str], x: np.ndarray, t: float, k: np.ndarray
) -> bool:
    """Check the structure at one point; return False if it cannot be evaluated, raise ModelError if it is violated."""
    *numbers, energy = (np.array(value) for value in structure.conditions(x, t, k))
    if not all(np.all(np.isfinite(value)) for value in (*numbers, energy)):
        return False
    gaps, allowed = numbers[::2], [_allowed(size) for size in numbers[1::2]]
    if _violation(gaps, allowed, states, ports) is None:
        return True
    allowed = [a + np.array(bound) for a, bound in zip(allowed, structure.rounding(x, t, k), strict=True)]
    violation = _violation(gaps, allowed, states, ports)
    if violation is not None:
        raise ModelError(f"{violation} at {_point(states, x, t)}")
    return True


def _violation(
    gaps: list[np.ndarray], allowed: list[np.ndarray], states: Sequence[str], ports: Sequence[str]
) -> str | None:
    """Return a message for the first violated condition, or None."""
    n = len(states)
    skew, symmetric, gradient, time = (_worst(gaps[i], allowed[i]) for i in (0, 1, 3, 4))
    if skew is not None:
        a, b = _entry(skew, n, "JBN"), _entry(skew[::-1], n, "JBN")
        return f"{a[0]} is not skew: {a} + {b} is {gaps[0][skew]:.3g} instead of 0"
    if symmetric is not None:
        a, b = _entry(symmetric, n, "RPS"), _entry(symmetric[::-1], n, "RPS")
        return f"{a[0]} is not symmetric: {a} - {b} is {gaps[1][symmetric]:.3g} instead of 0"
    indefinite = _indefinite(gaps[2], allowed[2], states, ports)
    if indefinite is not None:
        return indefinite
    if gradient is not None:
        i = gradient[0]
        return f"the gradient of H is not E^T z: entry {i} (dH/d{states[i]}) differs by {gaps[3][gradient]:.3g}"
    return None if time is None else f"dH/dt is not z.r: it differs by {gaps[4][time]:.3g}"


def _allowed(size: np.ndarray) -> np.ndarray:
    """Return the tolerance of a condition; for matrices such as ``A J A^T`` the roundoff scales with whole rows."""
    if size.shape[0] != size.shape[1]:
        return TOLERANCE * size
    largest = np.sqrt(size.max(axis=1, initial=0.0))
    return TOLERANCE * size + 64 * UNIT * np.outer(largest, largest)


def _worst(gap: np.ndarray, allowed: np.ndarray) -> tuple[int, int] | None:
    excess = np.abs(gap) - allowed
    if excess.max(initial=0.0) <= 0:
        return None
    i, j = np.unravel_index(int(np.argmax(excess)), excess.shape)
    return int(i), int(j)


def _indefinite(w: np.ndarray, allowed: np.ndarray, states: Sequence[str], ports: Sequence[str]) -> str | None:
    n = len(states)
    # tolerances of the entries are added to the diagonal (Gershgorin), scaled to be independent of units
    lifted = (w + w.T) / 2 + np.diag(allowed.sum(axis=1))
    diagonal = np.diag(lifted)
    if np.any(diagonal < 0):
        i = int(np.argmin(diagonal))
        return f"{_not_psd(i, n)}: {_entry((i, i), n, 'RPS')} is {w[i, i]:.3g}"
    scale = np.where(diagonal > 0, 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 0.0)
    scaled = scale[:, None] * lifted * scale
    values, vectors = np.linalg.eigh(scaled)
    if not values.size or values[0] >= -1e-14 * values.size:
        return None
    worst = vectors[:, 0]
    i, j = sorted(divmod(int(np.argmin(np.outer(worst, worst) * scaled)), values.size))  # largest contribution
    direction = scale * worst / np.abs(scale * worst).max()
    names = [*states, *(f"u[{port}]" for port in ports)]
    along = ", ".join(f"{names[a]}: {direction[a]:.3g}" for a in np.flatnonzero(np.abs(direction) > 1e-3))
    return (
        f"{_not_psd(j, n)} because of {_entry((i, j), n, 'RPS')}: the power lost along the efforts ({along}) is "
        f"{direction @ w @ direction:.3g}"
    )


def _not_psd(i: int, n: int) -> str:
    return f"{'R' if i < n else 'W = [[R, P], [P^T, S]]'} is not positive semidefinite"


def _entry(place: tuple[int, int], n: int, blocks: str) -> str:
    """Return the label of an entry of an extended matrix in terms of the user's blocks."""
    i, j = place
    if i < n and j < n:
        return f"{blocks[0]}[{i}, {j}]"
    if i >= n and j >= n:
        return f"{blocks[2]}[{i - n}, {j - n}]"
    return f"{blocks[1]}[{min(i, j)}, {max(i, j) - n}]"


def _point(states: Sequence[str], x: np.ndarray, t: float) -> str:
    shown = [f"{name} = {value:.6g}" for name, value in zip(states[:8], x[:8], strict=True)]
    return ", ".join([*shown, *(["..."] if len(states) > 8 else []), f"t = {t:.6g}"])
