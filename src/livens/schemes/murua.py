"""Murua's partitioned method (M-PRK) on mechanical systems, with index-2 or GGL constraints."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from livens import tableaus
from livens.schemes.base import Requirement, Scheme
from livens.schemes.recipes.element_equations import ElementEquations
from livens.schemes.recipes.elements import ElementEnergies, Share, State
from livens.schemes.recipes.index_two import index_two_equations, parts_of
from livens.schemes.recipes.partitioned import Staged, constant_momentum_map, force, powers, velocity_constraint
from livens.schemes.recipes.relations import weighted
from livens.schemes.recipes.stages import (
    combined,
    estimate_weights,
    integral_weights,
    lagrange_weights,
    polynomial_onward,
)
from livens.schemes.step import StepEquations
from livens.schemes.tableaus.murua import Murua as Coefficients

#: If M depends on q, the velocities at the Lobatto nodes follow from the momenta there.
MASS = Requirement("known_velocities", "a mass matrix that is regular or constant (unit quaternions have neither)")


class Murua(Scheme):
    """M-PRK, S002 def. 6.5 and (6.9)-(6.14), in Livens form: order 2s, constraints on velocity level (index 2)::

        Q_i    = q0 + h sum_k a_ik V_k              dT/dv(Q_i, V_i)       = p0 + h sum_k a_ik F_k       Gauss nodes
        Qbar_i = q0 + h sum_k abar_ik V_k           dT/dv(Qbar_i, Vbar_i) = p0 + h sum_k abar_ik F_k    Lobatto nodes
        0      = G(Qbar_i) Vbar_i                   q1 = Qbar_s, v1 = Vbar_s

    Every F_k has a multiplier L_k. For constant M, Vbar_i is on the polynomial through v0 and the V_k and needs no
    momentum, so that M may be singular. Positions are not enforced and drift off the constraints.

    On other models of index 2, ``x' = f(x, z)`` with ``0 = g(x)``, such as port-Hamiltonian mechanics and multibody
    equations in the formulations "index-2" and "ggl", it is the method of thm. 6.7 (`discretization.murua_dae`).
    """

    family = "murua-<s>"
    aliases = ("M-PRK-<s>",)
    nicknames: ClassVar[dict[str, tuple[Any, ...]]] = {"M-PRK": (2,)}
    group = "Runge-Kutta methods"
    forms: tuple[str, ...] = ("elements", "descriptor")
    examples: ClassVar[tuple[tuple[Any, ...], ...]] = ((1,), (2,), (3,))
    symplectic, symmetric = False, True
    conserves: tuple[str, ...] = ("velocity_constraint",)
    summary, source = "Murua's method: Gauss nodes for motion, Lobatto nodes for hidden constraints", "S002 def. 6.5"
    requires = (MASS,)
    stabilised: ClassVar[bool] = False

    def __init__(self, s: int) -> None:
        self.coefficients = tableaus.murua(s)
        self.name = type(self).family.replace("<s>", str(s))
        self.order = 2 * s
        self.estimate_order = s

    def missing(self, model: Any) -> list[str]:
        found = super().missing(model)
        if not found and "elements" not in model.forms and parts_of(model) is None:
            return ["a model of index 2, x' = f(x, z) with 0 = g(x)"]
        return found

    def equations(self, model: Any, dropped: Collection[int] = ()) -> StepEquations:
        if "elements" not in model.forms:
            return index_two_equations(model.without(dropped), self.coefficients)
        kind = _GGLStages if self.stabilised else _MuruaStages
        recipe = kind(self.coefficients, constant_momentum_map(model))
        recipe.estimate_order = self.estimate_order
        return ElementEquations(model, recipe, tuple(dropped))


class MuruaGGL(Murua):
    """M-PRK on the GGL equations (S002 def. 2.3): ``q' = v + G^T mu`` enforces ``g(q) = 0`` as well.

    At Gauss nodes ``Q'_k = V_k + G(Q_k)^T Mu_k``, at Lobatto nodes ``0 = g(Qbar_i)`` and ``0 = G(Qbar_i) Vbar_i``.
    The mu vanish with the step size.
    """

    family = "murua-ggl-<s>"
    forms = ("elements",)
    aliases = ("M-PRK-GGL-<s>",)
    conserves = ("constraint", "velocity_constraint")
    summary, source = "Murua's method on the GGL equations: no drift", "S002 sect. 6.3.3"
    stabilised = True


class _MuruaStages(Staged):
    """M-PRK stages with unknowns ``D_i = (Q_i - q0)/h - c_i v0``, and ``Vbar_i - v0`` unless M is constant."""

    order, symplectic, symmetric, conserves = 0, False, False, ()  # defined by the scheme that uses this class
    summary = source = ""

    def __init__(self, coefficients: Coefficients, constant_mass: bool) -> None:
        c = self.coefficients = coefficients
        s = self.s = c.s
        self.constant_mass = constant_mass
        self.W = np.linalg.inv(c.dynamics.A)
        self.E = c.A_bar @ self.W  #: from stages to Lobatto nodes
        self.deviations = tuple(f"D{i + 1}" for i in range(s))
        self.bars = () if constant_mass else tuple(f"B{i + 1}" for i in range(s))
        self.unknowns = (*self.deviations, *self.bars)
        self.multipliers = tuple(f"L{i + 1}" for i in range(s))

    # -- stages -------------------------------------------------------------------------------------------------------
    def _all(self, x: Any, names: tuple[str, ...]) -> list[Any]:
        return [getattr(x, name) for name in names]

    def increments(self, x: Any) -> list[Any]:
        """Return ``V_i - v0``."""
        D = self._all(x, self.deviations)
        return [weighted(w, D, 0 * D[0]) for w in self.W]

    def bar_increments(self, x: Any) -> list[Any]:
        """Return ``Vbar_i - v0``."""
        V = self.increments(x)
        return self._all(x, self.bars) if self.bars else [weighted(E, V, 0 * V[0]) for E in self.E]

    def positions(self, old: State, x: Any, h: Any) -> list[Any]:
        """Return ``Q_i``."""
        both = zip(self.coefficients.dynamics.c, self._all(x, self.deviations), strict=True)
        return [old.q + h * (c * old.v + D) for c, D in both]

    def bar_positions(self, old: State, x: Any, h: Any) -> list[Any]:
        """Return ``Qbar_i``."""
        both, D = zip(self.coefficients.c_bar, self.E, strict=True), self._all(x, self.deviations)
        return [old.q + h * weighted(E, D, old.v if c == 1 else c * old.v) for c, E in both]

    # -- discretization -----------------------------------------------------------------------------------------------
    def guess(self, old: State, h: Any) -> list[Any]:
        return [0 * old.v] * len(self.unknowns)

    def end(self, old: State, x: Any, h: Any) -> tuple[Any, Any]:
        return self.bar_positions(old, x, h)[-1], old.v + self.bar_increments(x)[-1]

    def rows(self, old: State, x: Any, h: Any) -> list[Any]:
        if self.constant_mass:
            return [0 * old.p] * self.s
        return [*(-float(w.sum()) * old.p for w in self.W), *([-old.p] * self.s)]

    def momentum(self, old: State, x: Any, h: Any) -> Any:
        return 0 * old.p

    def share(self, e: ElementEnergies, old: State, new: State, x: Any, h: Any, t: Any) -> Share:
        T, s, zero = self.coefficients.dynamics, self.s, ca.SX(e.n, 1)
        Q, L, times = self.positions(old, x, h), self._all(x, self.multipliers[:s]), [t + c * h for c in T.c]
        increments = self.increments(x)
        V = [old.v + increment for increment in increments]
        F = [force(e, Q[i], V[i], times[i]) - e.G(Q[i], times[i]).T @ L[i] for i in range(s)]
        if self.constant_mass:
            P = [e.T_v(Q[i], increments[i]) - e.T_v(Q[i], zero) for i in range(s)]  # minus p0
        else:
            P = [e.T_v(Q[i], V[i]) for i in range(s)]
        rows = [weighted(self.W[k], P, zero) - h * F[k] for k in range(s)]
        velocities = [old.v + increment for increment in self.bar_increments(x)]
        bars = list(zip(self.bar_positions(old, x, h), velocities, self.bar_times(t, h), strict=True))
        if self.bars:
            A_bar = self.coefficients.A_bar
            rows += [e.T_v(q, v) - h * weighted(a, F, zero) for (q, v, _), a in zip(bars, A_bar, strict=True)]
        work = [powers(e, Q[i], V[i], L[i], times[i]) for i in range(s)]
        return Share(
            rows=rows,
            constraints=[velocity_constraint(e, q, v, time) for q, v, time in bars],
            momentum=e.T_v(new.q, new.v),
            supplied=h * combined(T.b, [supplied for supplied, _ in work]),
            dissipated=h * combined(T.b, [dissipated for _, dissipated in work]),
        )

    def bar_times(self, t: Any, h: Any) -> list[Any]:
        return [t + (h if c == 1 else c * h) for c in self.coefficients.c_bar]

    @property
    def onward(self) -> np.ndarray:
        one = np.eye(len(self.unknowns))
        last = one[-1] if self.bars else self.E[-1] @ self._increments_by_unknowns()
        return polynomial_onward(self.coefficients.dynamics.c) @ np.vstack([one[: self.s], last])

    def _increments_by_unknowns(self) -> np.ndarray:
        """Return ``V_i - v0`` as a matrix of coefficients of the unknowns."""
        return self.W

    def force_multipliers(self, x: Any) -> Any:
        """Return the polynomial through the stage multipliers at t + h."""
        at_end = self.coefficients.interpolant().lagrange(1.0)
        return combined(at_end, self._all(x, self.multipliers[: self.s]))

    def inside(self, old: State, x: Any, h: Any, theta: Any) -> tuple[Any, Any]:
        """Return the dense output: q from derivatives at Gauss nodes, v through v0, the V_i and v1."""
        T, D = self.coefficients.dynamics, self._all(x, self.deviations)
        slopes = [weighted(w, D, old.v) for w in self.W]
        nodes, V = np.concatenate([[0.0], T.c, [1.0]]), [old.v + increment for increment in self.increments(x)]
        v = combined(lagrange_weights(nodes, theta), [old.v, *V, self.end(old, x, h)[1]])
        return old.q + h * combined(integral_weights(T.c, theta), slopes), v

    def estimate(self, old: State, x: Any, h: Any) -> Any:
        """Return the embedded error estimate of Gauss methods; the weights sum to zero."""
        T, increments = self.coefficients.dynamics, self.increments(x)
        return h * combined(estimate_weights(T.c, T.b, new=True)[1:], increments)


class _GGLStages(_MuruaStages):
    """GGL stages with the stage velocities ``V_i - v0`` as additional unknowns, as ``Q' = V + G^T mu``."""

    def __init__(self, coefficients: Coefficients, constant_mass: bool) -> None:
        super().__init__(coefficients, constant_mass)
        self.speeds = tuple(f"V{i + 1}" for i in range(self.s))
        self.unknowns = (*self.deviations, *self.speeds, *self.bars)
        self.multipliers = (*self.multipliers, *(f"M{i + 1}" for i in range(self.s)))

    def increments(self, x: Any) -> list[Any]:
        return self._all(x, self.speeds)

    def _increments_by_unknowns(self) -> np.ndarray:
        return np.eye(len(self.unknowns))[self.s : 2 * self.s]

    def multiplier_guess(self, name: str, lam: Any) -> Any:
        return 0 * lam if name.startswith("M") else lam

    def rows(self, old: State, x: Any, h: Any) -> list[Any]:
        rows, D = super().rows(old, x, h), self._all(x, self.deviations)
        slopes = [weighted(w, D, 0 * old.v) - V for w, V in zip(self.W, self.increments(x), strict=True)]
        return [*rows[: self.s], *slopes, *rows[self.s :]]

    def share(self, e: ElementEnergies, old: State, new: State, x: Any, h: Any, t: Any) -> Share:
        share, s = super().share(e, old, new, x, h, t), self.s
        times = [t + c * h for c in self.coefficients.dynamics.c]
        Q, Mu = self.positions(old, x, h), self._all(x, self.multipliers[s:])
        slopes = [-e.G(Q[i], times[i]).T @ Mu[i] for i in range(s)]
        share.rows = [*share.rows[:s], *slopes, *share.rows[s:]]
        at_bars = zip(self.bar_positions(old, x, h), self.bar_times(t, h), strict=True)
        share.constraints = [*share.constraints, *(e.g(q, time) / h for q, time in at_bars)]
        return share
