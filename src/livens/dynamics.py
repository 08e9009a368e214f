"""What follows from a System as a whole: sums over the elements and their derivatives, in q, v, p, t, k."""

from __future__ import annotations

import functools
from typing import Any

import casadi as ca

from livens.element import ElementModel
from livens.system import System


class Dynamics:
    """Energies, momenta, constraints of a system and their derivatives, summed over the elements."""

    def __init__(self, system: System) -> None:
        self.system = system
        n = system.n
        self.q, self.v, self.p = ca.SX.sym("q", n), ca.SX.sym("v", n), ca.SX.sym("p", n)
        self.t, self.k = ca.SX.sym("t"), ca.SX.sym("k", system.parameter_count)
        parts: dict[ElementModel, ca.Function] = {}
        self.T, self.V, self.R = ca.SX(0), ca.SX(0), ca.SX(0)
        self.F, constraints = ca.SX.zeros(n), []
        for model, index, where in zip(system.models, system.indices, system.parameter_indices, strict=True):
            if model not in parts:
                parts[model] = ca.Function(
                    "element", [model.q, model.v, model.t, model.k], [model.T, model.V, model.R, model.F, model.g]
                )
            i = list(index)
            T, V, R, F, g = parts[model](self.q[i], self.v[i], self.t, self.k[list(where)])
            self.T, self.V, self.R = self.T + T, self.V + V, self.R + R
            self.F[i] += F
            constraints.append(g)
        self.g = ca.vertcat(*constraints)
        self.arguments = [self.q, self.v, self.p, self.t, self.k]

    def function(self, expression: Any) -> ca.Function:
        """Any expression of this object's symbols as a function of (q, v, p, t, k)."""
        return ca.Function("f", self.arguments, [expression])

    @functools.cached_property
    def G(self) -> Any:
        return ca.jacobian(self.g, self.q)

    @functools.cached_property
    def fibre_derivative(self) -> Any:
        """``p = dT/dv``."""
        return ca.gradient(self.T, self.v)

    @functools.cached_property
    def augmented_mass(self) -> Any:
        """The mass matrix, with ``a q q^T`` added for every unit quaternion: regular for rigid bodies (S004 eq. 140).

        a is half the trace of the quaternion's block at the identity, which is 2 tr J.
        """
        M = ca.jacobian(self.fibre_derivative, self.v)
        for four in self.system.quaternions:
            i = list(four)
            a = ca.substitute(ca.trace(M[i, i]), self.q[i], ca.DM([1, 0, 0, 0])) / 2
            direction = ca.SX(self.system.n, 1)
            direction[i] = self.q[i]
            M = M + a * direction @ direction.T
        return M

    @functools.cached_property
    def velocity_constraint(self) -> Any:
        """The hidden constraint ``dg/dt = G v + dg/dt``."""
        return ca.jtimes(self.g, self.q, self.v) + ca.jacobian(self.g, self.t)

    @functools.cached_property
    def acceleration_system(self) -> tuple[Any, Any]:
        """Matrix and right-hand side of ``M a + G^T lam = f, G a = -c`` for accelerations and multipliers."""
        momentum = self.fibre_derivative
        M = ca.jacobian(momentum, self.v)
        force = ca.gradient(self.T - self.V, self.q) - ca.gradient(self.R, self.v) + self.F
        force -= ca.jtimes(momentum, self.q, self.v)
        hidden = self.velocity_constraint
        bias = ca.jtimes(hidden, self.q, self.v) + ca.jacobian(hidden, self.t)
        m = self.system.m
        matrix = ca.vertcat(ca.horzcat(M, self.G.T), ca.horzcat(self.G, ca.SX(m, m)))
        return matrix, ca.vertcat(force, -bias)


@functools.lru_cache(maxsize=64)
def dynamics(system: System) -> Dynamics:
    """The dynamics of a system, derived once."""
    return Dynamics(system)
