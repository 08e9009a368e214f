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
from livens.schemes.core.scheme import Requirement, Scheme
from livens.schemes.core.step_equations import StepEquations, StepGraph
from livens.schemes.splitting.kepler_maps import (
    SYMBOLIC,
    WisdomHolmanMaps,
    corrector,
    jacobi_coefficients,
    kick_drift_pairs,
    leapfrog,
)
from livens.types import Expr

N_BODY = Requirement("is_nbody", "a gravitational N-body system (PointMasses)")
#: Maximum number of substeps between two stored states.
_MAX_SUBSTEPS = 10**9
#: Maximum number of substeps in one graph; native code has no limit.
_MAX_GRAPH_SUBSTEPS = 64


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
    when_to_use = "Planets about one dominant star, over millions of orbits."
    when_to_avoid = (
        "Planets have close encounters with each other, or no mass dominates: use `kahan-li-<order>:<scheme>`."
    )
    formulations = ("elements",)
    requires = (N_BODY,)
    implicit = False
    n_substeps, uses_corrector = 1, False

    def equations(self, model: PointMasses, removed_constraints: Collection[int] = ()) -> StepEquations:
        return WisdomHolmanEquations(model, self.n_substeps, self.uses_corrector)


class CorrectedWisdomHolman(WisdomHolman):
    """`n` Wisdom-Holman substeps per step, between a symplectic corrector and its inverse.

    The corrector cancels errors of first order in the masses of the planets, up to powers of the step of order 17; the
    remaining errors are of second order in the masses. Its cost is that of some 60 substeps, so that n should be large:
    states are then few, and a hundred times as accurate.
    """

    family = "wisdom-holman:<n>"
    examples = ((10,),)
    source = "Wisdom, Holman and Touma 1996; Wisdom 2006"
    when_to_use = "The same with a symplectic corrector: errors of second order in the planet masses."
    when_to_avoid = "You need the state in every step: corrections cost time at output."
    symmetric = False

    def __init__(self, n: float) -> None:
        if not 1 <= n <= _MAX_SUBSTEPS or n != int(n):
            raise InputError(f"the number of Wisdom-Holman steps in a step must be whole and at least 1, got {n:g}")
        self.n_substeps, self.uses_corrector = int(n), True
        self.name = f"wisdom-holman:{self.n_substeps}"
        self.evaluations_per_step = self.n_substeps
        self.summary = f"{self.n_substeps} steps of wisdom-holman, with symplectic corrector"


class SXLanes:
    """Lane arithmetic on columns of CasADi expressions, with an entry for each planet."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes

    def constant(self, value: float) -> float:
        return value

    def fma(self, a: Expr, b: Expr | float, c: Expr | float) -> Expr:
        return a * b + c

    def sqrt(self, a: Expr) -> Expr:
        return ca.sqrt(a)

    def absolute(self, a: Expr) -> Expr:
        return ca.fabs(a)

    def gather(self, a: Expr, indices: Sequence[int]) -> Expr:
        return a[list(indices)]


class WisdomHolmanEquations(StepEquations):
    """Step equations of Wisdom-Holman schemes."""

    def __init__(self, model: PointMasses, n_substeps: int, uses_corrector: bool) -> None:
        self.model, self.n_substeps, self.uses_corrector = model, n_substeps, uses_corrector
        self.layout = model.layout

    @property
    def n_unknowns(self) -> int:
        return 0

    @property
    def n_planets(self) -> int:
        return self.model.count - 1

    @property
    def dimension(self) -> int:
        return self.model.dimension

    @functools.cached_property
    def corrector_substeps(self) -> list[tuple[float, float]]:
        """Corrector: (kick, drift) pairs before the first substep, in units of the substep size."""
        return kick_drift_pairs(corrector(1.0)) if self.uses_corrector else []

    @functools.cached_property
    def inverse_corrector_substeps(self) -> list[tuple[float, float]]:
        """Inverse corrector: (kick, drift) pairs after the last substep."""
        return kick_drift_pairs(corrector(-1.0)) if self.uses_corrector else []

    @functools.cached_property
    def fingerprint(self) -> str:
        data = (
            f"wisdom-holman {self.n_planets} {self.dimension} {self.n_substeps} {self.uses_corrector} "
            f"{self.layout.sizes}"
        )
        return hashlib.sha256(data.encode()).hexdigest()

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

    def to_single_graph(self) -> StepGraph:
        return self._graph

    @functools.cached_property
    def _graph(self) -> StepGraph:
        """Step graph, with a fixed number of Kepler iterations; differentiable."""
        if self.n_substeps > _MAX_GRAPH_SUBSTEPS:
            raise InputError(
                f"a step of {self.n_substeps} Wisdom-Holman substeps is too long to be one graph, as derivatives "
                f"and the reference tier need it: take at most {_MAX_GRAPH_SUBSTEPS}"
            )
        model, n, d = self.model, self.n_planets, self.dimension
        z, c = ca.SX.sym("z", self.layout.size), ca.SX.sym("c", 2 + model.parameter_count)
        h = c[0] / self.n_substeps
        G, masses = model.gravity_parameters(c[2:])
        weights = ca.vertcat(*masses)
        table = {name: ca.vertcat(*row) for name, row in jacobi_coefficients(G, masses).items()}
        maps = WisdomHolmanMaps(n, SXLanes(n), table.__getitem__, None)
        to_jacobi, from_jacobi = (_as_sx(make(masses)) for make in (self.to_jacobi, self.from_jacobi))
        positions = ca.reshape(z[self.layout["q"]], d, n + 1).T
        velocities = ca.reshape(z[self.layout["p"]], d, n + 1).T / ca.repmat(weights, 1, d)
        positions, velocities = to_jacobi @ positions, to_jacobi @ velocities
        r, v = [positions[1:, i] for i in range(d)], [velocities[1:, i] for i in range(d)]
        for kick, drift in [
            *self.corrector_substeps,
            *kick_drift_pairs(leapfrog(self.n_substeps)),
            *self.inverse_corrector_substeps,
        ]:
            if kick:
                v = maps.kick(r, v, kick * h)
            if drift:
                drifted = maps.drift(r, v, drift * h, SYMBOLIC)
                r, v = drifted.r, drifted.v
        centre, centre_velocity = positions[0, :] + c[0] * velocities[0, :], velocities[0, :]
        new_positions = from_jacobi @ ca.vertcat(centre, ca.horzcat(*r))
        new_velocities = from_jacobi @ ca.vertcat(centre_velocity, ca.horzcat(*v))
        final_state = ca.SX(z)
        final_state[self.layout["q"]] = ca.vec(new_positions.T)
        final_state[self.layout["v"]] = ca.vec(new_velocities.T)
        final_state[self.layout["p"]] = ca.vec((new_velocities * ca.repmat(weights, 1, d)).T)
        return StepGraph.from_residual(
            ca.SX.sym("x", 0),
            z,
            c,
            residual=ca.SX(0, 1),
            final_state=ca.densify(final_state),
            initial_guess=ca.SX(0, 1),
            block_sizes=(),
            equation_labels=(),
            layout=self.layout,
        )


def _as_sx(entries: Sequence[Sequence[Any]]) -> Expr:
    return ca.vertcat(*(ca.horzcat(*row) for row in entries))


def to_array(matrix: Sequence[Sequence[Any]]) -> np.ndarray:
    """Return a matrix of numbers as an array."""
    return np.array([[float(entry) for entry in row] for row in matrix])
