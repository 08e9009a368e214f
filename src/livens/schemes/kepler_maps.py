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

#: (Stumpff terms, argument quarterings, Kepler iterations) for short drifts, for any drift, and for symbolic graphs
#: with a fixed iteration count.
QUICK, ANY, GRAPH = (7, 0, 2), (7, 4, 12), (7, 4, 6)
#: Tolerance of the last correction of Kepler's equation; with cubic convergence the next one is at round-off.
SETTLED = 1e-6
#: Maximum argument for which the Stumpff series is accurate without quartering.
SHORT = 1.5
#: Weights of the drifts of the corrector of order 17, Wisdom, Holman and Touma (1996) and Wisdom (2006).
_A = math.sqrt(7.0 / 40.0)
_B = (
    0.093056103771425958591541059067553547, -0.065192863576377893658290760803725762,
    0.032422198864713580293681523029577131, -0.012071760822342291062449751726959664,
    0.0033132577069380655655490196833451994, -0.00063599983075817658983166881625078546,
    7.6436355227935738363241846979413475e-5, -4.3347415473373580190650223498124945e-6,
)  # fmt: skip


class Numbers(Protocol):
    """Lane arithmetic: operations on vectors with an entry for each planet."""

    lanes: int

    def constant(self, number: float) -> Any: ...

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        """Return ``a b + c``."""
        ...

    def sqrt(self, a: Any) -> Any: ...

    def absolute(self, a: Any) -> Any: ...

    def picked(self, a: Any, places: Sequence[int]) -> Any:
        """Return the entries of a at these indices."""
        ...


def rows(G: Any, masses: Sequence[Any]) -> dict[str, list[Any]]:
    """Return the coefficients of the maps, one entry per planet, from G and the masses (star first)."""
    n = len(masses) - 1
    total = [masses[0]]  # cumulative masses
    for mass in masses[1:]:
        total.append(total[-1] + mass)
    planet = masses[1:]
    found: dict[str, list[Any]] = {
        "mu": [G * total[i + 1] for i in range(n)],
        # for the first planet, the attraction of the star is entirely in its Kepler problem
        "star": [0.0, *[-G * masses[0]] * (n - 1)],
        "back": [0.0, *(G * total[i + 1] for i in range(1, n))],
    }
    for k in range(n - 1):
        found[f"centre {k}"] = [planet[k] / total[k + 1] if i > k else 0.0 for i in range(n)]
    for shift in range(1, n // 2 + 1):
        found[f"ahead {shift}"] = [G * planet[(i + shift) % n] for i in range(n)]
        found[f"behind {shift}"] = [-G * planet[(i - shift) % n] for i in range(n)]
    for k in range(n):
        found[f"jacobi {k}"] = [(1.0 if i == k else 0.0) + (planet[k] / total[i] if k >= i else 0.0) for i in range(n)]
    return found


@dataclass(frozen=True)
class Motion:
    """Result of a Kepler drift: positions, velocities, and data of the last iteration of Kepler's equation."""

    r: list[Any]
    v: list[Any]
    unknown: Any
    correction: Any
    argument: Any  # argument of the Stumpff series


class KeplerMaps:
    """Kicks and drifts of n planets; `row` returns coefficients by name, `padding_guard` is 1 in idle lanes."""

    def __init__(self, planets: int, numbers: Numbers, row: Any, apart: Any) -> None:
        self.n, self._do, self._row, self._apart = planets, numbers, row, apart

    def _dot(self, a: Sequence[Any], b: Sequence[Any]) -> Any:
        total = a[0] * b[0]
        for x, y in zip(a[1:], b[1:], strict=True):
            total = self._do.fma(x, y, total)
        return total

    def _spread(self, a: Any, k: int) -> Any:
        return self._do.picked(a, [k] * self._do.lanes)

    def _inverse_cube(self, s: Any) -> Any:
        return self._do.constant(1.0) / (s * self._do.sqrt(s))

    def kick(self, r: Sequence[Any], v: Sequence[Any], h: Any) -> list[Any]:
        """Return the velocities after the mutual interaction of the planets for a time h."""
        n, do, row = self.n, self._do, self._row
        place = list(r)  # relative to the star
        for k in range(n - 1):
            place = [do.fma(self._spread(x, k), row(f"centre {k}"), y) for x, y in zip(r, place, strict=True)]
        pull = self._inverse_cube(self._dot(place, place)) * row("star")
        a = [x * pull for x in place]
        idle = list(range(n, do.lanes))
        for shift in range(1, n // 2 + 1):  # every pair (i, i + shift) once
            ahead = [(i + shift) % n for i in range(n)] + idle
            behind = [(i - shift) % n for i in range(n)] + idle
            d = [do.picked(x, ahead) - x for x in place]
            s = self._dot(d, d)
            p = self._inverse_cube(s if self._apart is None else s + self._apart)
            w = [x * p for x in d]
            a = [do.fma(x, row(f"ahead {shift}"), y) for x, y in zip(w, a, strict=True)]
            if 2 * shift != n:
                a = [do.fma(do.picked(x, behind), row(f"behind {shift}"), y) for x, y in zip(w, a, strict=True)]
        back = self._inverse_cube(self._dot(r, r)) * row("back")
        out = [x * back for x in r]
        for k in range(n):
            out = [do.fma(self._spread(x, k), row(f"jacobi {k}"), y) for x, y in zip(a, out, strict=True)]
        return [do.fma(x, h, y) for x, y in zip(out, v, strict=True)]

    def drift(self, r: Sequence[Any], v: Sequence[Any], h: Any, kind: tuple[int, int, int]) -> Motion:
        """Return the Kepler motion for a time h, in universal variables (Mikkola and Innanen 1999).

        ``r0 X + eta G2 + zeta G3 = h`` is solved by iterations of third order, Halley's for short h, else Laguerre's,
        which converges globally.
        """
        do, (_, halvings, sweeps) = self._do, kind
        one, half, mu = do.constant(1.0), do.constant(0.5), self._row("mu")
        eta, r0 = self._dot(r, v), do.sqrt(self._dot(r, r))
        inverse = one / r0
        beta = mu * inverse * do.constant(2.0) - self._dot(v, v)
        zeta = mu - beta * r0
        if halvings:
            X = beta * h / mu
        else:
            u = h * inverse
            X = u * (one - half * u * inverse * (eta - u * (eta * eta * inverse - zeta * do.constant(1 / 3))))
        for _ in range(sweeps):
            _, G1, G2, G3 = self._stumpff(beta, X, kind)
            f = do.fma(r0, X, do.fma(eta, G2, zeta * G3)) - h
            slope = do.fma(zeta, G2, do.fma(eta, G1, r0))
            bend = do.fma(zeta, G1, eta * (one - beta * G2))
            if halvings:
                root = do.sqrt(do.absolute(do.constant(16.0) * slope * slope - do.constant(20.0) * f * bend))
                correction = do.constant(5.0) * f / (slope + root)
            else:
                u = f / slope
                correction = u * (one + half * u * bend / slope)
            X = X - correction
        argument, G1, G2, G3 = self._stumpff(beta, X, kind)
        R = one / do.fma(zeta, G2, do.fma(eta, G1, r0))
        f, g = -(mu * G2 * inverse), h - mu * G3
        df, dg = -(mu * G1 * inverse * R), -(mu * G2 * R)
        pairs = list(zip(r, v, strict=True))
        return Motion(
            [x + do.fma(f, x, g * y) for x, y in pairs],
            [y + do.fma(df, x, dg * y) for x, y in pairs],
            X,
            correction,
            argument,
        )

    def _stumpff(self, beta: Any, X: Any, kind: tuple[int, int, int]) -> tuple[Any, Any, Any, Any]:
        """Return the argument of the Stumpff series, and G1, G2, G3 at X."""
        do, (terms, halvings, _) = self._do, kind
        one = do.constant(1.0)
        square = X * X
        z = beta * square * do.constant(0.25**halvings)
        minus = -z
        c2, c3 = (do.constant(1 / math.factorial(2 * terms + i)) for i in (2, 3))
        for k in reversed(range(terms)):
            c2 = do.fma(minus, c2, do.constant(1 / math.factorial(2 * k + 2)))
            c3 = do.fma(minus, c3, do.constant(1 / math.factorial(2 * k + 3)))
        c1 = do.fma(minus, c3, one)
        c0 = do.fma(minus, c2, one)
        longer = z
        for _ in range(halvings):
            c3, c2, c1 = (c2 + c0 * c3) * do.constant(0.25), c1 * c1 * do.constant(0.5), c0 * c1
            longer = longer * do.constant(4.0)
            c0 = one - longer * c2  # the double-angle formula of the cosine would lose two bits each time
        return z, c1 * X, c2 * square, c3 * square * X


# -- sequences of kicks and drifts ------------------------------------------------------------------------------------
Move = tuple[str, float]


def corrector(sign: float) -> list[Move]:
    """Return the symplectic corrector for steps of size 1, or its inverse for the opposite sign."""
    found: list[Move] = []
    for s in (-1, 1):
        for k in range(8, 0, -1) if s < 0 else range(1, 9):
            a, b = s * k * _A, s * sign * _B[k - 1]
            found += [("drift", a), ("kick", -b), ("drift", -2 * a), ("kick", b), ("drift", a)]
    return found


def leaps(count: int) -> list[Move]:
    """Return `count` leapfrog steps of size 1: drift, kick, drift."""
    return [("drift", 0.5), *[("kick", 1.0), ("drift", 1.0)] * (count - 1), ("kick", 1.0), ("drift", 0.5)]


def paired(moves: Sequence[Move]) -> list[tuple[float, float]]:
    """Return the substeps as (kick, drift) pairs; consecutive substeps of one type are merged.

    >>> paired([("drift", 0.5), ("kick", 1.0), ("drift", 0.25), ("drift", 0.25)])
    [(0.0, 0.5), (1.0, 0.5)]
    """
    merged: list[list[Any]] = []
    for kind, size in moves:
        if merged and merged[-1][0] == kind:
            merged[-1][1] += size
        else:
            merged.append([kind, size])
    numbers = [size for _, size in merged]
    if merged and merged[0][0] == "drift":
        numbers.insert(0, 0.0)
    if len(numbers) % 2:
        numbers.append(0.0)
    return list(zip(numbers[::2], numbers[1::2], strict=True))
