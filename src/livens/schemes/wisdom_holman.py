"""Wisdom and Holman's splitting: planets on ellipses that kick each other."""

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

PLANETARY = Requirement("planetary", "bodies that attract each other, and nothing else (PointMasses)")
#: More steps than this between two states are a slip of the pen.
_MOST = 10**9
#: Native code takes steps of any length; as one graph they would be too long.
_LONGEST_GRAPH = 64


class WisdomHolman(Scheme):
    """Half a step on Kepler's ellipses, a kick by the other planets, half a step on the ellipses.

    The first body is the star; the others should be given from inside to outside. In Jacobi coordinates the energy is
    ``H = sum H_Kepler + H_interaction``, both parts are solved exactly, and the error of a step is that of an exact
    motion times the mass of planets relative to the star: steps may be a twentieth of the shortest period. The scheme
    is symplectic, symmetric, and keeps momentum and angular momentum.
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
    """A step is `n` steps of Wisdom and Holman's, between a symplectic corrector and its inverse.

    The corrector takes a state to one for which errors of first order in the masses of the planets cancel, up to
    powers of the step of order 17; what is left is of second order in the masses. It costs as much as some 60 steps, so
    n should be large: then states are few, and each is a hundred times as accurate.
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
    """Columns of expressions, an entry for each planet."""

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
    """Steps in which planets move on ellipses and kick each other."""

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
        """Kicks and drifts before the first step, in units of the size of one of the `count` steps."""
        return paired(corrector(1.0)) if self.corrected else []

    @functools.cached_property
    def tail(self) -> list[tuple[float, float]]:
        """Those after the last one."""
        return paired(corrector(-1.0)) if self.corrected else []

    @functools.cached_property
    def fingerprint(self) -> str:
        content = f"wisdom-holman {self.planets} {self.dimension} {self.count} {self.corrected} {self.layout.sizes}"
        return hashlib.sha256(content.encode()).hexdigest()

    def to_jacobi(self, masses: Sequence[Any]) -> Any:
        """The matrix from places of bodies to Jacobi coordinates, the centre of mass first; expressions or numbers."""
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
        """Its inverse: body i is where its Jacobi coordinate says, less its share in that, and in all behind it."""
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
        """The step as one graph: long, but it can be differentiated, and sweeps are as many as may be needed."""
        if self.count > _LONGEST_GRAPH:
            raise InputError(
                f"a step that is {self.count} steps of Wisdom and Holman's is too long to be one graph, as derivatives "
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
    """A matrix of numbers."""
    return np.array([[float(entry) for entry in row] for row in matrix])
