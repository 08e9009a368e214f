"""Energy-momentum scheme on Livens' principle (EML)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar

import casadi as ca

from livens.models.system import System
from livens.schemes.energy_momentum import EnergyMomentum
from livens.schemes.gradients import DiscreteGradient
from livens.schemes.recipes.elements import ElementEnergies, Share, State
from livens.schemes.recipes.frame_bodies import DirectorBody
from livens.schemes.recipes.frame_equations import FrameEquations
from livens.schemes.recipes.frame_kernels import FrameScheme
from livens.schemes.recipes.midpoint_velocity import MidpointVelocity
from livens.schemes.recipes.rolling import rolling
from livens.schemes.step import StepEquations


class LivensEM(EnergyMomentum, MidpointVelocity):
    """Energy-momentum scheme, S000 (28) and S004 (72), with partitioned discrete gradients (129)-(131)::

        q1 - q0     = h v_m
        p1 - p0     = h DG_q L - h sum_k lam_k DG g_k + h F_m
        (p0 + p1)/2 = DG_v L
        0           = g(q1)

    Velocity-level constraints are enforced at the midpoint, where their forces act and do no work. Applied forces and
    dissipation act at the midpoint: their work ``h F_m . v_m``, with that of rheonomic constraints, is exactly the
    change of the generalised energy ``p.v - L``.

    Rigid bodies in director coordinates have six unknowns each (three in the plane); the trajectory is the same.
    """

    name = "livens-em"
    aliases = ("EML",)
    group = "Energy-momentum and midpoint schemes"
    order = 2
    symplectic = False
    symmetric = True
    conserves = ("generalized_energy", "constraint")
    summary = "energy-momentum scheme on Livens' principle (EML)"
    source = "S000 (28), S004 (72)"
    rolls = True

    def equations(self, model: System, dropped: Collection[int] = ()) -> StepEquations:
        if model.frames and model.regular_rotation:
            return FrameEquations(model, OnFrames(self), tuple(dropped))
        return super().equations(model, dropped)

    def share(self, e: ElementEnergies, old: State, new: State, x: Any, h: Any, t: Any) -> Share:
        Dq, Dv, q_m, v_m = h * x.v_m, 2 * (x.v_m - old.v), old.q + h / 2 * x.v_m, x.v_m
        F, R_v = e.F(q_m, v_m, t + h / 2), e.R_v(q_m, v_m, t + h / 2)
        T_q, T_v = self.gradient.kinetic(e, old.q, Dq, old.v, Dv)
        V_q, V_by_t = self.gradient.in_time(e, e.model.V, old.q, Dq, t, h)
        force = T_q - V_q + F - R_v
        supplied = h * ca.dot(F, v_m) + V_by_t
        for k in range(e.model.on_position):
            g_q, g_by_t = self.gradient.in_time(e, e.model.g[k], old.q, Dq, t, h)
            force -= x.lam[k] * g_q
            supplied += x.lam[k] * g_by_t
        closed = e.g(new.q, t + h) / h  # divided by h: of the size of a velocity, like the other unknowns
        dissipated = h * ca.dot(R_v, v_m)
        if e.model.rates is not None:
            reaction, work, lost, closed = rolling(e, old.q, v_m, x.lam, closed, t, h)
            force, supplied, dissipated = force + reaction, supplied + work, dissipated + lost
        return Share(
            rows=[2 * T_v - h * force],
            constraints=[closed],
            momentum=2 * T_v,
            supplied=supplied,
            dissipated=dissipated,
        )


class OnFrames(FrameScheme):
    """`livens-em` on rigid bodies in director coordinates: momenta of directors, projected body by body."""

    body = DirectorBody
    spins = False

    def __init__(self, scheme: LivensEM) -> None:
        self._scheme = scheme

    def force_scheme(self) -> LivensEM:
        return self._scheme


class LivensEMWithGradient(LivensEM):
    """`livens-em` with the discrete gradient of its name, as ``livens-em:mean-value``."""

    family = "livens-em:<gradient>"
    examples: ClassVar[tuple[tuple[Any, ...], ...]] = (("mean-value",), ("itoh-abe",))

    def __init__(self, gradient: DiscreteGradient | str) -> None:
        super().__init__(gradient)
        if self.name == LivensEM.name:  # explicit "gonzalez": keep the name of the look-up
            self._say_which()
