"""Wisdom-Holman splitting: Kepler drifts and interaction kicks."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Collection, Sequence
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.models.point_masses import PointMasses
from livens.schemes.base import Requirement, Scheme
from livens.schemes.kepler_maps import GRAPH, KeplerMaps, corrector, leaps, paired, rows
from livens.schemes.step import FlatEquations, StepEquations

PLANETARY = Requirement("planetary", "a gravitational N-body system (PointMasses)")
#: Maximum number of substeps between two stored states.
_MOST = 10**9
#: Maximum number of substeps in one graph; native code has no limit.
_LONGEST_GRAPH = 64


class WisdomHolman(Scheme):
    """Wisdom-Holman splitting: half Kepler drift, kick by the other planets, half Kepler drift.

    The first body is the star; the others should be ordered from inside to outside. In Jacobi coordinates the energy is
    ``H = sum H_Kepler + H_interaction``, both parts have exact flows, and the error of a step is proportional to the
    mass ratio of planets and star: steps may be a twentieth of the shortest period. The scheme is symplectic,
    symmetric, and conserves momentum and angular momentum.
    """

    name, order, symplectic, symmetric = "wisdom-holman", 2, True, True
    conserves: tuple[str, ...] = ("momentum_maps",)
    group = "Splitting and variational schemes, without constraints"
    summary = "planets on Kepler ellipses that kick each other"
    source = "Wisdom and Holman 1991"
    forms = ("elements",)
    requires = (PLANETARY,)
    implicit = False
    count, corrected = 1, False

    def equations(self, model: Any, dropped: Collection[int] = ()) -> StepEquations:
        return PlanetEquations(model, self.count, self.corrected)


class CorrectedWisdomHolman(WisdomHolman):
    """`n` Wisdom-Holman substeps per step, between a symplectic corrector and its inverse.

    The corrector cancels errors of first order in the masses of the planets, up to powers of the step of order 17; the
    remaining errors are of second order in the masses. Its cost is that of some 60 substeps, so that n should be large:
    states are then few, and a hundred times as accurate.
    """

    family = "wisdom-holman:<n>"
    examples = ((10,),)
    source = "Wisdom, Holman and Touma 1996; Wisdom 2006"
    symmetric = False

    def __init__(self, n: float) -> None:
        if not 1 <= n <= _MOST or n != int(n):
            raise InputError(f"the number of Wisdom-Holman steps in a step must be whole and at least 1, got {n:g}")
        self.count, self.corrected = int(n), True
        self.name = f"wisdom-holman:{self.count}"
        self.evaluations = self.count
        self.summary = f"{self.count} steps of wisdom-holman, with symplectic corrector"


class Columns:
    """Lane arithmetic on columns of CasADi expressions, with an entry for each planet."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes

    def constant(self, number: float) -> Any:
        return number

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        return a * b + c

    def sqrt(self, a: Any) -> Any:
        return ca.sqrt(a)

    def absolute(self, a: Any) -> Any:
        return ca.fabs(a)

    def picked(self, a: Any, places: Sequence[int]) -> Any:
        return a[list(places)]


class PlanetEquations(StepEquations):
    """Step equations of Wisdom-Holman schemes."""

    def __init__(self, model: PointMasses, count: int, corrected: bool) -> None:
        self.model, self.count, self.corrected = model, count, corrected
        self.layout = model.layout

    @property
    def planets(self) -> int:
        return self.model.count - 1

    @property
    def dimension(self) -> int:
        return self.model.dimension

    @functools.cached_property
    def head(self) -> list[tuple[float, float]]:
        """Corrector: (kick, drift) pairs before the first substep, in units of the substep size."""
        return paired(corrector(1.0)) if self.corrected else []

    @functools.cached_property
    def tail(self) -> list[tuple[float, float]]:
        """Inverse corrector: (kick, drift) pairs after the last substep."""
        return paired(corrector(-1.0)) if self.corrected else []

    @functools.cached_property
    def fingerprint(self) -> str:
        content = f"wisdom-holman {self.planets} {self.dimension} {self.count} {self.corrected} {self.layout.sizes}"
        return hashlib.sha256(content.encode()).hexdigest()

    def to_jacobi(self, masses: Sequence[Any]) -> Any:
        """Return the matrix from body positions to Jacobi coordinates, the centre of mass first."""
        n = len(masses)
        matrix: list[list[Any]] = []
        total: Any = sum(masses[1:], start=masses[0])
        matrix.append([mass / total for mass in masses])
        inner = masses[0]
        for i in range(1, n):
            matrix.append([*(-masses[j] / inner for j in range(i)), 1.0, *[0.0] * (n - i - 1)])
            inner = inner + masses[i]
        return matrix

    def from_jacobi(self, masses: Sequence[Any]) -> Any:
        """Return the inverse of `to_jacobi`."""
        n = len(masses)
        totals = [masses[0]]
        for mass in masses[1:]:
            totals.append(totals[-1] + mass)
        matrix: list[list[Any]] = []
        for i in range(n):
            row: list[Any] = [1.0]
            for j in range(1, n):
                if j < i:
                    row.append(0.0)
                elif j == i:
                    row.append(totals[j - 1] / totals[j])
                else:
                    row.append(-masses[j] / totals[j])
            matrix.append(row)
        return matrix

    def flatten(self) -> FlatEquations:
        return self._flat

    @functools.cached_property
    def _flat(self) -> FlatEquations:
        """Step graph, with a fixed number of Kepler iterations; differentiable."""
        if self.count > _LONGEST_GRAPH:
            raise InputError(
                f"a step of {self.count} Wisdom-Holman substeps is too long to be one graph, as derivatives "
                f"and the reference tier need it: take at most {_LONGEST_GRAPH}"
            )
        model, n, d = self.model, self.planets, self.dimension
        z, c = ca.SX.sym("z", self.layout.size), ca.SX.sym("c", 2 + model.parameter_count)
        h = c[0] / self.count
        G, masses = model.gravity(c[2:])
        weights = ca.vertcat(*masses)
        table = {name: ca.vertcat(*row) for name, row in rows(G, masses).items()}
        maps = KeplerMaps(n, Columns(n), table.__getitem__, None)
        there, back = (_matrix(make(masses)) for make in (self.to_jacobi, self.from_jacobi))
        places = ca.reshape(z[self.layout["q"]], d, n + 1).T
        speeds = ca.reshape(z[self.layout["p"]], d, n + 1).T / ca.repmat(weights, 1, d)
        places, speeds = there @ places, there @ speeds
        r, v = [places[1:, i] for i in range(d)], [speeds[1:, i] for i in range(d)]
        for kick, drift in [*self.head, *paired(leaps(self.count)), *self.tail]:
            if kick:
                v = maps.kick(r, v, kick * h)
            if drift:
                moved = maps.drift(r, v, drift * h, GRAPH)
                r, v = moved.r, moved.v
        centre, carried = places[0, :] + c[0] * speeds[0, :], speeds[0, :]
        new_places = back @ ca.vertcat(centre, ca.horzcat(*r))
        new_speeds = back @ ca.vertcat(carried, ca.horzcat(*v))
        end = ca.SX(z)
        end[self.layout["q"]] = ca.vec(new_places.T)
        end[self.layout["v"]] = ca.vec(new_speeds.T)
        end[self.layout["p"]] = ca.vec((new_speeds * ca.repmat(weights, 1, d)).T)
        return FlatEquations.of(
            ca.SX.sym("x", 0),
            z,
            c,
            residual=ca.SX(0, 1),
            end=ca.densify(end),
            guess=ca.SX(0, 1),
            kinds=(),
            row_names=(),
            layout=self.layout,
        )


def _matrix(entries: Sequence[Sequence[Any]]) -> Any:
    return ca.vertcat(*(ca.horzcat(*row) for row in entries))


def numbers_of(matrix: Sequence[Sequence[Any]]) -> np.ndarray:
    """Return a matrix of numbers as an array."""
    return np.array([[float(entry) for entry in row] for row in matrix])
