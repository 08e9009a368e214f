"""Kepler drifts and interaction kicks of Wisdom-Holman schemes, in Jacobi coordinates.

Jacobi coordinates of a body are relative to the centre of mass of all preceding bodies. In them the energy is a sum of
Kepler problems and of a small perturbation that depends on positions only (Wisdom and Holman 1991). Both maps are
written for generic lane arithmetic: columns of expressions with an entry for each planet, or SIMD vectors of native
code with a lane for each planet.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from livens.types import Expr, ModelFunction

#: (Stumpff terms, argument quarterings, Kepler iterations) for short drifts, for any drift, and for symbolic graphs
#: with a fixed iteration count.
FAST, ROBUST, SYMBOLIC = (7, 0, 2), (7, 4, 12), (7, 4, 6)
#: Tolerance of the last correction of Kepler's equation; with cubic convergence the next one is at round-off.
KEPLER_TOLERANCE = 1e-6
#: Maximum argument for which the Stumpff series is accurate without quartering.
STUMPFF_LIMIT = 1.5
#: Weights of the drifts of the corrector of order 17, Wisdom, Holman and Touma (1996) and Wisdom (2006).
_A = math.sqrt(7.0 / 40.0)
_B = (
    0.093056103771425958591541059067553547, -0.065192863576377893658290760803725762,
    0.032422198864713580293681523029577131, -0.012071760822342291062449751726959664,
    0.0033132577069380655655490196833451994, -0.00063599983075817658983166881625078546,
    7.6436355227935738363241846979413475e-5, -4.3347415473373580190650223498124945e-6,
)  # fmt: skip


class LaneArithmetic(Protocol):
    """Lane arithmetic: operations on vectors with an entry for each planet."""

    lanes: int

    def constant(self, value: float) -> Any: ...

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        """Return ``a b + c``."""
        ...

    def sqrt(self, a: Any) -> Any: ...

    def absolute(self, a: Any) -> Any: ...

    def gather(self, a: Any, indices: Sequence[int]) -> Any:
        """Return the entries of a at these indices."""
        ...


def jacobi_coefficients(G: Expr | float, masses: Sequence[Any]) -> dict[str, list[Any]]:
    """Return the coefficients of the maps, one entry per planet, from G and the masses (star first)."""
    n = len(masses) - 1
    total = [masses[0]]  # cumulative masses
    for mass in masses[1:]:
        total.append(total[-1] + mass)
    planet = masses[1:]
    coefficients: dict[str, list[Any]] = {
        "mu": [G * total[i + 1] for i in range(n)],
        # for the first planet, the attraction of the star is entirely in its Kepler problem
        "star": [0.0, *[-G * masses[0]] * (n - 1)],
        "back": [0.0, *(G * total[i + 1] for i in range(1, n))],
    }
    for k in range(n - 1):
        coefficients[f"centre {k}"] = [planet[k] / total[k + 1] if i > k else 0.0 for i in range(n)]
    for shift in range(1, n // 2 + 1):
        coefficients[f"ahead {shift}"] = [G * planet[(i + shift) % n] for i in range(n)]
        coefficients[f"behind {shift}"] = [-G * planet[(i - shift) % n] for i in range(n)]
    for k in range(n):
        coefficients[f"jacobi {k}"] = [
            (1.0 if i == k else 0.0) + (planet[k] / total[i] if k >= i else 0.0) for i in range(n)
        ]
    return coefficients


@dataclass(frozen=True)
class KeplerDrift:
    """Result of a Kepler drift: positions, velocities, and data of the last iteration of Kepler's equation."""

    r: list[Any]
    v: list[Any]
    unknown: Any
    correction: Any
    argument: Any  # argument of the Stumpff series


class WisdomHolmanMaps:
    """Kicks and drifts of n planets; `row` returns coefficients by name, `padding_guard` is 1 in idle lanes."""

    def __init__(self, planets: int, arithmetic: LaneArithmetic, row: ModelFunction, padding_guard: Any) -> None:
        self.n, self._arithmetic, self._row, self._padding_guard = planets, arithmetic, row, padding_guard

    def _dot(self, a: Sequence[Any], b: Sequence[Any]) -> Any:
        total = a[0] * b[0]
        for x, y in zip(a[1:], b[1:], strict=True):
            total = self._arithmetic.fma(x, y, total)
        return total

    def _broadcast(self, a: Any, k: int) -> Any:
        return self._arithmetic.gather(a, [k] * self._arithmetic.lanes)

    def _inverse_cube(self, s: Any) -> Any:
        return self._arithmetic.constant(1.0) / (s * self._arithmetic.sqrt(s))

    def kick(self, r: Sequence[Any], v: Sequence[Any], h: Any) -> list[Any]:
        """Return the velocities after the mutual interaction of the planets for a time h."""
        n, ops, row = self.n, self._arithmetic, self._row
        position = list(r)  # relative to the star
        for k in range(n - 1):
            position = [ops.fma(self._broadcast(x, k), row(f"centre {k}"), y) for x, y in zip(r, position, strict=True)]
        star_factor = self._inverse_cube(self._dot(position, position)) * row("star")
        a = [x * star_factor for x in position]
        padding_lanes = list(range(n, ops.lanes))
        for shift in range(1, n // 2 + 1):  # every pair (i, i + shift) once
            next_planets = [(i + shift) % n for i in range(n)] + padding_lanes
            previous_planets = [(i - shift) % n for i in range(n)] + padding_lanes
            d = [ops.gather(x, next_planets) - x for x in position]
            s = self._dot(d, d)
            p = self._inverse_cube(s if self._padding_guard is None else s + self._padding_guard)
            w = [x * p for x in d]
            a = [ops.fma(x, row(f"ahead {shift}"), y) for x, y in zip(w, a, strict=True)]
            if 2 * shift != n:
                a = [
                    ops.fma(ops.gather(x, previous_planets), row(f"behind {shift}"), y)
                    for x, y in zip(w, a, strict=True)
                ]
        kepler_factor = self._inverse_cube(self._dot(r, r)) * row("back")
        acceleration = [x * kepler_factor for x in r]
        for k in range(n):
            acceleration = [
                ops.fma(self._broadcast(x, k), row(f"jacobi {k}"), y) for x, y in zip(a, acceleration, strict=True)
            ]
        return [ops.fma(x, h, y) for x, y in zip(acceleration, v, strict=True)]

    def drift(self, r: Sequence[Any], v: Sequence[Any], h: Any, settings: tuple[int, int, int]) -> KeplerDrift:
        """Return the Kepler motion for a time h, in universal variables (Mikkola and Innanen 1999).

        ``r0 X + eta G2 + zeta G3 = h`` is solved by iterations of third order, Halley's for short h, else Laguerre's,
        which converges globally.
        """
        ops, (_, quarterings, iterations) = self._arithmetic, settings
        unity, half, mu = ops.constant(1.0), ops.constant(0.5), self._row("mu")
        eta, r0 = self._dot(r, v), ops.sqrt(self._dot(r, r))
        inverse = unity / r0
        beta = mu * inverse * ops.constant(2.0) - self._dot(v, v)
        zeta = mu - beta * r0
        if quarterings:
            X = beta * h / mu
        else:
            u = h * inverse
            X = u * (unity - half * u * inverse * (eta - u * (eta * eta * inverse - zeta * ops.constant(1 / 3))))
        for _ in range(iterations):
            _, G1, G2, G3 = self._stumpff(beta, X, settings)
            f = ops.fma(r0, X, ops.fma(eta, G2, zeta * G3)) - h
            f_prime = ops.fma(zeta, G2, ops.fma(eta, G1, r0))
            f_second = ops.fma(zeta, G1, eta * (unity - beta * G2))
            if quarterings:
                root = ops.sqrt(
                    ops.absolute(ops.constant(16.0) * f_prime * f_prime - ops.constant(20.0) * f * f_second)
                )
                correction = ops.constant(5.0) * f / (f_prime + root)
            else:
                u = f / f_prime
                correction = u * (unity + half * u * f_second / f_prime)
            X = X - correction
        argument, G1, G2, G3 = self._stumpff(beta, X, settings)
        R = unity / ops.fma(zeta, G2, ops.fma(eta, G1, r0))
        f, g = -(mu * G2 * inverse), h - mu * G3
        df, dg = -(mu * G1 * inverse * R), -(mu * G2 * R)
        pairs = list(zip(r, v, strict=True))
        return KeplerDrift(
            [x + ops.fma(f, x, g * y) for x, y in pairs],
            [y + ops.fma(df, x, dg * y) for x, y in pairs],
            X,
            correction,
            argument,
        )

    def _stumpff(self, beta: Any, X: Any, settings: tuple[int, int, int]) -> tuple[Any, Any, Any, Any]:
        """Return the argument of the Stumpff series, and G1, G2, G3 at X."""
        ops, (terms, quarterings, _) = self._arithmetic, settings
        unity = ops.constant(1.0)
        square = X * X
        z = beta * square * ops.constant(0.25**quarterings)
        minus = -z
        c2, c3 = (ops.constant(1 / math.factorial(2 * terms + i)) for i in (2, 3))
        for k in reversed(range(terms)):
            c2 = ops.fma(minus, c2, ops.constant(1 / math.factorial(2 * k + 2)))
            c3 = ops.fma(minus, c3, ops.constant(1 / math.factorial(2 * k + 3)))
        c1 = ops.fma(minus, c3, unity)
        c0 = ops.fma(minus, c2, unity)
        scaled_z = z
        for _ in range(quarterings):
            c3, c2, c1 = (c2 + c0 * c3) * ops.constant(0.25), c1 * c1 * ops.constant(0.5), c0 * c1
            scaled_z = scaled_z * ops.constant(4.0)
            c0 = unity - scaled_z * c2  # the double-angle formula of the cosine would lose two bits each time
        return z, c1 * X, c2 * square, c3 * square * X


# -- sequences of kicks and drifts ------------------------------------------------------------------------------------
Substep = tuple[str, float]


def corrector(sign: float) -> list[Substep]:
    """Return the symplectic corrector for steps of size 1, or its inverse for the opposite sign."""
    substeps: list[Substep] = []
    for s in (-1, 1):
        for k in range(8, 0, -1) if s < 0 else range(1, 9):
            a, b = s * k * _A, s * sign * _B[k - 1]
            substeps += [("drift", a), ("kick", -b), ("drift", -2 * a), ("kick", b), ("drift", a)]
    return substeps


def leapfrog(count: int) -> list[Substep]:
    """Return `count` leapfrog steps of size 1: drift, kick, drift."""
    return [("drift", 0.5), *[("kick", 1.0), ("drift", 1.0)] * (count - 1), ("kick", 1.0), ("drift", 0.5)]


def kick_drift_pairs(substeps: Sequence[Substep]) -> list[tuple[float, float]]:
    """Return the substeps as (kick, drift) pairs; consecutive substeps of one type are merged.

    >>> kick_drift_pairs([("drift", 0.5), ("kick", 1.0), ("drift", 0.25), ("drift", 0.25)])
    [(0.0, 0.5), (1.0, 0.5)]
    """
    merged: list[list[Any]] = []
    for substep_type, size in substeps:
        if merged and merged[-1][0] == substep_type:
            merged[-1][1] += size
        else:
            merged.append([substep_type, size])
    sizes = [size for _, size in merged]
    if merged and merged[0][0] == "drift":
        sizes.insert(0, 0.0)
    if len(sizes) % 2:
        sizes.append(0.0)
    return list(zip(sizes[::2], sizes[1::2], strict=True))
