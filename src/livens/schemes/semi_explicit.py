"""A scheme for expensive and cheap forces: the former once per step, the latter implicitly."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.models.crowd import Crowd
from livens.models.hamiltonian.model import Hamiltonian
from livens.models.system import System
from livens.schemes.base import Scheme
from livens.schemes.recipes.crowds import CrowdEquations, crowd_start
from livens.schemes.recipes.maps import MapScheme, Phase, Step, digits, phase_of
from livens.schemes.recipes.split_forces import Ahead, SplitStep, at_start, from_momenta
from livens.schemes.recipes.split_scales import first_scale, scale_of
from livens.schemes.recipes.twists import twists
from livens.schemes.scaling import Scaling, StiffnessEstimate, written
from livens.schemes.step import StepEquations
from livens.schemes.stormer_verlet import SEPARABLE


def tells_elements_apart(model: Any) -> bool:
    """Whether a model is taken element by element: bodies that turn, constraints, masses that depend on q, own betas.

    All others are in Hamilton's form, with a mass matrix that is constant.
    """
    if not isinstance(model, System):
        return False
    own = any(element.beta is not None for element in model.elements)
    return own or bool(model.m or model.frames) or not (model.constant_mass and "phase space" in model.forms)


def no_constant_mass(model: Any) -> list[str]:
    """What a model that is taken in Hamilton's form has not: an energy T(p) + V(q) with a constant mass matrix."""
    if "phase space" not in model.forms:
        return []
    phase = phase_of(model)
    if not phase.separable:
        return [SEPARABLE.words]
    return ["a constant mass matrix"] if phase.inverse_mass is None else []


class SemiExplicit(MapScheme):
    """``M q'' = A + B`` with expensive forces A and cheap ones B (S003 paper V, eq. 5)::

        A* = A(q0 + a h v0, v0, t0 + a h)          B* = B((1-b) z0 + b z1), z = (q, v, t)
        q1 = q0 + h v0 + h^2/2 M^-1 (A* + B*)      p1 = p0 + h (A* + B*)

    A* follows from the state at the start of the step. It is evaluated at the end of the step before and kept in the
    state, so that no Newton correction evaluates A, and nothing differentiates it: one evaluation in every step. (A
    shorter step at the end of a run takes the A* of a full one, which is as good in the order of the scheme.) The
    unknown is the mean velocity ``(q1 - q0)/h``; without cheap forces, or with b = 0, nothing is solved.

    On systems this is chapter 4.2 of S003: frame bodies turn on the group of rotations (gyroscopic terms belong to A),
    masses may depend on the configuration (inertial forces are then taken at the midpoint), constraints have
    multipliers, and every cheap element may have a beta of its own. Only what B or a constraint acts on is unknown;
    linear springs and dampers that act on one coordinate each are solved in closed form.

    Stable for ``b >= 1/2`` whatever the stiffness and the damping in B, if those of A are in the region of theorem 3.
    Of order 2 for ``a = b = 1/2`` if A does not depend on velocities, else of order 1. Symmetric with these numbers, so
    that it can be composed (A is then evaluated within the steps); symplectic only if the Hessians of A and B commute.

    With a scaling s, steps of time are ``h = eps s`` (eq. 14). The estimate (15), `livens.scaling.stiffness_estimate`,
    evaluates A at two more points; the largest stable eps is then 2.
    """

    family = "semi-explicit:<alpha>,<beta>"
    examples: ClassVar[tuple[tuple[Any, ...], ...]] = ((0.5, 0.5), (0.5, 0.6))
    symplectic = symmetric = False
    conserves = ()
    summary, source = "expensive forces once per step, cheap ones implicit", "S003 paper V (5)"

    forms = ("phase space", "elements", "crowd")

    def __init__(
        self, alpha: float, beta: float, scaling: Scaling | StiffnessEstimate | None = None, kept: bool = True
    ) -> None:
        self.alpha, self.beta, self.scaling = alpha, beta, scaling
        #: A is evaluated at the end of the step before; in parts of a composition, which differ in size, it is not.
        self.kept = kept
        self.symmetric = alpha == beta == 0.5
        self.name = f"semi-explicit:{digits(alpha)},{digits(beta)}"
        self.order = 2 if alpha == beta == 0.5 else 1
        self.implicit, self.fictive = beta != 0.0, scaling is not None
        self.evaluations = 3 if isinstance(scaling, StiffnessEstimate) else 1

    def __eq__(self, other: object) -> bool:
        mine = self.name, self.scaling, self.kept
        return isinstance(other, SemiExplicit) and mine == (other.name, other.scaling, other.kept)

    def __hash__(self) -> int:
        return hash((self.name, self.scaling, self.kept))

    def composed(self) -> Scheme:
        return SemiExplicit(self.alpha, self.beta, self.scaling, kept=False)

    def scaled(self, scaling: Any) -> Scheme:
        if not isinstance(scaling, (Scaling, StiffnessEstimate)):
            if not callable(scaling):
                wanted = "takes a scaling such as livens.scaling.stiffness_estimate(1.0)"
                raise InputError(f"scheme '{self.name}' {wanted}, got {scaling!r}")
            scaling = written(scaling)
        if isinstance(scaling, StiffnessEstimate) and not self.alpha:
            raise InputError(f"the scaling {scaling} looks ahead by alpha h, which is 0 in scheme '{self.name}'")
        return SemiExplicit(self.alpha, self.beta, scaling)

    def counted(self, steps: int, corrections: int) -> tuple[int, int]:
        """Once at the start, then as often as a step says; Newton's method sees the cheap forces alone."""
        return 1 + steps * self.evaluations, 0

    def missing(self, model: Any) -> list[str]:
        if isinstance(model, Crowd):
            return ["steps of equal size"] if self.fictive or not self.kept else []
        if not tells_elements_apart(model):
            return [*super().missing(model), *no_constant_mass(model)][:1]
        missing = [] if model.regular_mass or model.frames else ["a regular mass matrix"]
        if not model.quadratic_kinetic_energy:
            missing.append("a kinetic energy that is quadratic in the velocities")
        if model.rolls:
            missing.append("constraints on positions, not on velocities (rolling, gears)")
        if model.controls:
            missing.append("a model without sampled controllers")
        if self.fictive and not all(twists(model).simple):
            missing.append("steps of equal size, or masses that do not depend on the configuration")
        return missing

    @property
    def ahead(self) -> Ahead:
        """Where A is evaluated."""
        return Ahead(self.alpha)

    def _split(self, model: System, dropped: Collection[int] = ()) -> SplitStep:
        scale = None if self.scaling is None else scale_of(model, self.scaling, self.alpha)
        return SplitStep(model, self.ahead, self.beta, self.kept, dropped, scale)

    def equations(self, model: Any, dropped: Collection[int] = ()) -> StepEquations:
        if isinstance(model, Crowd):
            return CrowdEquations(model, self.ahead.alpha, self.ahead.extrapolated)
        if tells_elements_apart(model):
            return self._split(model, dropped).equations()
        return super().equations(model, dropped)

    def explicit(self, model: Any) -> bool:
        if isinstance(model, Crowd):
            return True
        return not self.equations(model).flatten().size if tells_elements_apart(model) else super().explicit(model)

    def add(self, model: Hamiltonian) -> dict[str, int]:
        kept = {"A": 2 * model.n + 1} if self.kept else {}
        return kept | ({"t": 1, "scale": 1} if self.fictive else {})

    def memory(self, model: Any, values: Mapping[str, Any], k: Any, t: float, h: float) -> dict[str, Any]:
        if isinstance(model, Crowd):
            return {"A": crowd_start(model, self.ahead.alpha, values, k, h)}
        if tells_elements_apart(model):
            more: dict[str, Any] = {}
            if self.scaling is not None:
                of_state = scale_of(model, self.scaling, self.alpha)
                more = {"t": t, "scale": first_scale(model, of_state, self.scaling, values, t, h, k)}
                h *= more["scale"]
            return more | ({"A": at_start(model, self.ahead, values, t, h, k)} if self.kept else {})
        phase, found = Phase(phase_of(model), k), {}
        q, p = ca.DM(values["q"]), ca.DM(values["p"])
        if self.scaling is not None:
            # there was no step yet: look as far ahead as in the longest one
            last = h * self.scaling.limit**-0.5 if isinstance(self.scaling, StiffnessEstimate) else h
            scale = float(self._scale(phase, q, p, t, last))
            if not (np.isfinite(scale) and scale > 0):
                where = f"the scaling {self.scaling} is {scale:g} in the initial state"
                raise InputError(f"{where}; it must be finite and greater than 0")
            found = {"t": t, "scale": scale}
            h *= scale
        return ({"A": np.array(self._ahead(phase, q, p, t, h)).ravel()} if self.kept else {}) | found

    def following(self, model: Any, q: Any, p: Any, t: Any, k: Any, h: Any) -> dict[str, Any]:
        """The expensive forces ahead, in steps of equal size; a scaling knows its step only from the one before."""
        if self.fictive or not self.kept or isinstance(model, Crowd):
            return {}
        if tells_elements_apart(model):
            return {"A": from_momenta(model, self.ahead, q, p, t, h, k)}
        return {"A": self._ahead(Phase(phase_of(model), k), q, p, t, h)}

    def memory_expressions(self, model: Any, q: Any, p: Any, k: Any, t: float, h: float) -> dict[str, Any]:
        return self.following(model, q, p, t, k, h)

    def unknowns(self, model: Hamiltonian) -> dict[str, int]:
        felt = self.beta and ca.depends_on(model.B, ca.vertcat(model.q, model.v))
        return {"mean_velocity": model.n} if felt else {}

    def guess(self, phase: Phase, old: Any, h: Any, t: Any) -> Mapping[str, Any]:
        return {"mean_velocity": old.v}

    def step(self, phase: Phase, old: Any, x: Any, h: Any, t: Any) -> Step:
        m, n, b, new = phase.model, phase.n, self.beta, {}
        eps, size, t = (h, h * old.scale, old.t) if self.fictive else (h, h, t)
        expensive = old.A if self.kept else self._ahead(phase, old.q, old.p, t, size)
        A, A_free, A_rate = expensive[:n], expensive[n : 2 * n], expensive[2 * n]
        W = ca.Function("W", [m.k], [ca.densify(m.inverse_mass)])(phase.k)
        u = getattr(x, "mean_velocity", old.v)
        q_b, v_b, t_b = old.q + b * size * u, old.v + 2 * b * (u - old.v), t + b * size
        cheap = ca.Function("B", [m.q, m.v, m.t, m.k], [m.B, m.terms.F_cheap, ca.gradient(m.terms.V_cheap, m.t)])
        B, B_free, B_rate = cheap(q_b, v_b, t_b, phase.k)
        mean = old.v + size / 2 * (W @ (A + B))
        rows = [u - mean] if vars(x) else []
        u = u if vars(x) else mean
        q, p, t = old.q + size * u, old.p + size * (A + B), t + size
        supplied = size * (ca.dot(A_free + B_free, u) + A_rate + B_rate)
        if self.fictive:
            new = {"t": t, "scale": self._scale(phase, q, p, t, size)}
            size = eps * new["scale"]
        if self.kept:
            new["A"] = self._ahead(phase, q, p, t, size, 2 * (u - old.v))
        return Step({"q": q, "p": p, **new}, rows, supplied=supplied)

    def _ahead(self, phase: Phase, q: Any, p: Any, t: Any, h: Any, change: Any = 0.0) -> Any:
        """A* of a step of size h from here; that of its forces without potential; ``dV/dt`` of its potentials.

        `change` is that of the velocities in the step before.
        """
        m, v, a = phase.model, phase.T_p(p), self.ahead.alpha
        parts = ca.densify(ca.vertcat(m.A, m.terms.F_expensive, ca.gradient(m.terms.V_expensive, m.t)))
        speed = v + a * change if self.ahead.extrapolated else v
        return ca.Function("A", [m.q, m.v, m.t, m.k], [parts])(q + a * h * v, speed, t + a * h, phase.k)

    def _scale(self, phase: Phase, q: Any, p: Any, t: Any, last: Any) -> Any:
        """The scaling here, after a step of size `last`."""
        m, size = phase.model, ca.SX.sym("h")
        if isinstance(self.scaling, StiffnessEstimate):
            s = self.scaling.expression(m, size, self.alpha)
        else:
            assert self.scaling is not None
            s = self.scaling.expression(m)
        return ca.Function("s", [m.q, m.p, m.v, m.t, m.k, size], [s])(q, p, phase.T_p(p), t, phase.k, last)
