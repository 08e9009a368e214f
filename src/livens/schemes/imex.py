"""IMEX splitting: kicks with expensive forces around the midpoint rule with cheap forces; symmetric and symplectic."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import casadi as ca
import numpy as np

from livens.expressions.layout import Layout
from livens.models.hamiltonian.model import Hamiltonian
from livens.models.system import System
from livens.schemes.recipes.maps import MapScheme, Phase, Step, Written, phase_of
from livens.schemes.recipes.split_forces import (
    Ahead,
    SplitForces,
    at_start,
    from_momenta,
    memory_size,
    solved_in_closed_form,
    split_forces,
)
from livens.schemes.recipes.twists import twists
from livens.schemes.semi_explicit import no_constant_mass, tells_elements_apart
from livens.schemes.step import StepEquations


class Imex(MapScheme):
    """IMEX Strang splitting: half kick with A, midpoint rule with B, half kick with A::

        p+ = p0 + h/2 A(q0)        u = M^-1 (p+ + h/2 B(q0 + h/2 u, u))        q1 = q0 + h u
        p- = p+ + h B              p1 = p- + h/2 A(q1)

    The second kick uses the same A as the first kick of the next step: one evaluation per step, without derivatives.
    Unlike scheme (5) of S003 paper V this is symplectic if all forces have potentials, as a composition of symplectic
    maps. Stiff parts in B are not damped. Velocity-dependent forces in A use the velocity before the second kick, which
    reduces the order to 1.

    Rigid bodies rotate freely in the step with B: ``I(R_m) w`` is the mean of the spatial angular momenta at both ends,
    which is symmetric and conserves the angular momentum of a free body.
    """

    name = "imex"
    order = 2
    symplectic, symmetric = True, True
    conserves = ()
    forms = ("phase space", "elements")
    summary, source = "kicks with expensive forces around the midpoint rule with cheap ones", "docs/bearing.md"
    implicit = True

    @property
    def ahead(self) -> Ahead:
        """Evaluation point of A."""
        return KICK

    def counted(self, steps: int, corrections: int) -> tuple[int, int]:
        """Return the counts of the expensive forces: once initially, then `evaluations_per_step` in each step."""
        return 1 + steps * self.evaluations, 0

    def missing(self, model: Any) -> list[str]:
        if not tells_elements_apart(model):
            return [*super().missing(model), *no_constant_mass(model)][:1]
        missing = [] if all(twists(model).simple) else ["a constant mass matrix, diagonal if there are bodies"]
        missing += self.no_black_box(model)
        if not (model.regular_mass or model.frames):
            missing.append("a regular mass matrix")
        if split_forces(model).constraints:
            missing.append("a model without constraints")
        if model.controls:
            missing.append("a model without sampled controllers")
        return missing

    # -- Hamiltonian form ---------------------------------------------------------------------------------------------
    def add(self, model: Hamiltonian) -> dict[str, int]:
        return {"A": 2 * model.n + 1}

    def unknowns(self, model: Hamiltonian) -> dict[str, int]:
        felt = ca.depends_on(model.B, ca.vertcat(model.q, model.v))
        return {"mean_velocity": model.n} if felt else {}

    def guess(self, phase: Phase, old: Any, h: Any, t: Any) -> Mapping[str, Any]:
        return {"mean_velocity": old.v}

    def step(self, phase: Phase, old: Any, x: Any, h: Any, t: Any) -> Step:
        m, n = phase.model, phase.n
        A, A_free, A_rate = old.A[:n], old.A[n : 2 * n], old.A[2 * n]
        pushed = old.p + h / 2 * A
        cheap = ca.Function("B", [m.q, m.v, m.t, m.k], [m.B, m.terms.F_cheap, ca.gradient(m.terms.V_cheap, m.t)])
        u = getattr(x, "mean_velocity", phase.T_p(pushed))
        B, B_free, B_rate = cheap(old.q + h / 2 * u, u, t + h / 2, phase.k)
        mean = phase.T_p(pushed + h / 2 * B)
        rows = [u - mean] if vars(x) else []
        u = u if vars(x) else mean
        q, p = old.q + h * u, pushed + h * B
        last = self._kick(phase, q, p, t + h)
        p_end = p + h / 2 * last[:n]
        speeds = (old.v + phase.T_p(pushed)) / 2, (phase.T_p(p) + phase.T_p(p_end)) / 2
        kicks = ca.dot(A_free, speeds[0]) + A_rate + ca.dot(last[n : 2 * n], speeds[1]) + last[2 * n]
        supplied = h * (kicks / 2 + ca.dot(B_free, u) + B_rate)
        return Step({"q": q, "p": p_end, "A": last}, rows, supplied=supplied)

    def _kick(self, phase: Phase, q: Any, p: Any, t: Any) -> Any:
        """Return A, its non-conservative part, and ``dV/dt`` of its potentials."""
        m = phase.model
        parts = ca.densify(ca.vertcat(m.A, m.terms.F_expensive, ca.gradient(m.terms.V_expensive, m.t)))
        return ca.Function("A", [m.q, m.v, m.t, m.k], [parts])(q, phase.T_p(p), t, phase.k)

    # -- element-wise form --------------------------------------------------------------------------------------------
    def equations(self, model: Any, dropped: Collection[int] = ()) -> StepEquations:
        return KickedStep(model).equations() if tells_elements_apart(model) else super().equations(model, dropped)

    def explicit(self, model: Any) -> bool:
        return not self.equations(model).flatten().size if tells_elements_apart(model) else super().explicit(model)

    def memory(self, model: Any, values: Mapping[str, Any], k: Any, t: float, h: float) -> dict[str, Any]:
        if tells_elements_apart(model):
            return at_start(model, KICK, values, t, h, k)
        phase = Phase(phase_of(model), k)
        return {"A": np.array(self._kick(phase, ca.DM(values["q"]), ca.DM(values["p"]), t)).ravel()}

    def following(self, model: Any, q: Any, p: Any, t: Any, k: Any, h: Any) -> dict[str, Any]:
        if tells_elements_apart(model):
            return {"A": from_momenta(model, KICK, q, p, t, h, k)}
        return {"A": self._kick(Phase(phase_of(model), k), q, p, t)}

    def memory_expressions(self, model: Any, q: Any, p: Any, k: Any, t: float, h: float) -> dict[str, Any]:
        return self.following(model, q, p, t, k, h)


#: Kicks are evaluated at the state; gyroscopic terms belong to the step between them.
KICK = Ahead(0.0, gyroscopic=False)


class KickedStep:
    """Step of `imex` for a System with rotating bodies, or with element-wise values of beta (which are ignored)."""

    def __init__(self, system: System) -> None:
        self.system, self.forces, self.twists = system, split_forces(system), twists(system)
        turning = range(len(self.twists.plain), self.twists.size)
        self.unknown = tuple(sorted({*_felt(self.forces), *turning}))

    def equations(self) -> StepEquations:
        layout = self.system.layout.with_(A=memory_size(self.system))
        unknowns = Layout(mean_velocity=len(self.unknown))
        return solved_in_closed_form(layout, unknowns, self.system.parameter_count, self.write)

    def write(self, old: Any, x: Any, h: Any, t: Any, k: Any) -> Written:
        f, tw, size, own = self.forces, self.twists, self.twists.size, list(self.unknown)
        u0 = tw.twist(old.q, old.v)
        pushed = u0 + h / 2 * old.A[:size]
        u = ca.SX(pushed)
        if own:
            u[own] = x.mean_velocity
        q_m = tw.moved(old.q, h / 2 * u)
        found = f.pushed(f.cheap, q_m, u, t + h / 2, k)
        B = tw.accelerations(q_m, u, found.force, k, gyroscopic=False)
        mean = pushed + h / 2 * B
        rows = u - mean
        for frame, i in tw.rates():
            before = tw.tensor(frame, old.q, k) @ pushed[i]
            rows[i] = tw.tensor(frame, q_m, k) @ u[i] - before - h / 2 * found.force[i]
        known = [i for i in range(size) if i not in self.unknown]
        u[known] = mean[known]
        q = tw.straightened(tw.moved(old.q, h * u))
        free = pushed + h * B
        for frame, i in tw.rates():
            after = tw.tensor(frame, old.q, k) @ pushed[i] + h * found.force[i]
            free[i] = (
                ca.solve(tw.tensor(frame, q, k), after) if frame.dimension == 3 else after / tw.tensor(frame, q, k)
            )
        last = KICK(f, q, free, ca.SX.zeros(size), t + h, h, k)
        u1 = free + h / 2 * last[:size]
        v = tw.lifted(q, u1)
        new = vars(old) | dict(q=q, v=v, p=tw.momenta(q, v, k), A=last)
        new["multipliers"] = ca.SX.zeros(self.system.m)
        lost = (old.A[2 * size + 1] + last[2 * size + 1]) / 2 + found.lost
        kicks = ca.dot(old.A[size : 2 * size], (u0 + pushed) / 2) + ca.dot(last[size : 2 * size], (free + u1) / 2)
        moving = (old.A[2 * size] + last[2 * size]) / 2 + found.moving
        new["supplied_energy"] += h * (kicks / 2 + ca.dot(found.free, u) + lost + moving)
        new["dissipated_energy"] += h * lost
        return new, [rows[own]] if own else [], {"mean_velocity": pushed[own]}


def _felt(forces: SplitForces) -> tuple[int, ...]:
    return forces.felt(0.5, (), own=False)
