"""Energy-momentum scheme for rigid bodies with body angular momenta."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from livens.models.system import System
from livens.schemes.base import Requirement, Scheme
from livens.schemes.livens_em import LivensEM
from livens.schemes.recipes.frame_bodies import BodyRecipe, LieBody
from livens.schemes.recipes.frame_equations import SPINS, FrameEquations, spin_expressions, spins_at
from livens.schemes.recipes.frame_kernels import FrameScheme
from livens.schemes.recipes.rotor_body import RotorBody, check_rotors
from livens.schemes.step import StepEquations

FRAMES = Requirement("has_frames", "rigid bodies in director coordinates (frames=True)")
TURNING = Requirement("regular_rotation", "bodies whose principal moments of inertia are all positive")


class LieEM(FrameScheme, Scheme):
    """Energy-momentum scheme with six unknowns per body (three in the plane)::

        q1 - q0  = h (u, w x dm_i)
        p1 - p0  = h F,          (p0 + p1)/2 = m u
        l1 - l0  = h tau,        w = Rm J^-1 (Pi0 + Pi1)/2,    l = R Pi,    tau = sum dm_i x F_i
        0        = g(q1)

    F and F_i are the discrete gradients of `livens-em` on centre and directors. As forces act at the midpoint positions
    of their points, which move with the body, energy, linear and angular momentum are conserved exactly. This holds for
    all joints at most quadratic in the directors and all potentials of invariants.
    """

    name = "lie-em"
    group = "Energy-momentum and midpoint schemes"
    order = 2
    symplectic = False
    symmetric = True
    conserves: tuple[str, ...] = ("generalized_energy", "constraint")
    summary = "energy-momentum scheme for rigid bodies: rotations by a Cayley map, body angular momenta"
    source = "docs/multibody.md"
    requires: tuple[Requirement, ...] = (FRAMES, TURNING)
    body = LieBody
    rotor_body: type[BodyRecipe] | None = RotorBody
    rolls = True
    sampled = True

    def force_scheme(self) -> LivensEM:
        return LivensEM()

    def equations(self, model: System, dropped: Collection[int] = ()) -> StepEquations:
        return FrameEquations(model, self, tuple(dropped))

    def memory(self, model: Any, values: Mapping[str, Any], k: Any, t: float, h: float) -> dict[str, Any]:
        spins = spins_at(model, values["q"], values["p"])
        check_rotors(model, spins, k, h)
        return {SPINS: spins} if spins.size else {}

    def memory_expressions(self, model: Any, q: Any, p: Any, k: Any, t: float, h: float) -> dict[str, Any]:
        spins = spin_expressions(model, q, p)
        return {SPINS: spins} if spins.numel() else {}
