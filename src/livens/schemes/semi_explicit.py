"""Semi-explicit scheme: expensive forces once per step, cheap forces implicitly."""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Collection, Mapping
from types import SimpleNamespace
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.math import Scalar
from livens.models.crowd import Crowd
from livens.models.found_contacts import FoundContacts
from livens.models.hamiltonian.model import Hamiltonian
from livens.models.system import System
from livens.schemes.base import Scheme
from livens.schemes.recipes.crowds import CrowdEquations, crowd_start
from livens.schemes.recipes.force_history import ForceHistory
from livens.schemes.recipes.loose_parts import LooseParts, loose_parts, loose_steps, parts_start
from livens.schemes.recipes.maps import MapScheme, Phase, Step, digits, phase_of
from livens.schemes.recipes.split_forces import Ahead, SplitStep, at_start, from_momenta
from livens.schemes.recipes.split_scales import first_scale, scale_of
from livens.schemes.recipes.twists import twists
from livens.schemes.scaling import Scaling, StiffnessEstimate, written
from livens.schemes.scaling.stiffness import Stiffness
from livens.schemes.step import Box, StepEquations
from livens.schemes.stormer_verlet import SEPARABLE


def tells_elements_apart(model: Any) -> bool:
    """Return True if a model is stepped in element-wise form.

    This is the case for rotating bodies, constraints, a configuration-dependent mass matrix, and element-wise values of
    beta. All other models are in Hamiltonian form with a constant mass matrix.
    """
    if not isinstance(model, System):
        return False
    own = any(element.beta is not None for element in model.elements) or isinstance(model.box, FoundContacts)
    return own or bool(model.m or model.frames) or not (model.constant_mass and "phase space" in model.forms)


def no_constant_mass(model: Any) -> list[str]:
    """Return the unmet requirement of the Hamiltonian form: an energy T(p) + V(q) with a constant mass matrix."""
    if "phase space" not in model.forms:
        return []
    phase = phase_of(model)
    if not phase.separable:
        return [SEPARABLE.words]
    return ["a constant mass matrix"] if phase.inverse_mass is None else []


class SemiExplicit(MapScheme):
    """Semi-explicit scheme for ``M q'' = A + B`` with expensive forces A and cheap forces B (S003 paper V, eq. 5)::

        A* = A(q0 + a h v0, v0, t0 + a h)          B* = B((1-b) z0 + b z1), z = (q, v, t)
        q1 = q0 + h v0 + h^2/2 M^-1 (A* + B*)      p1 = p0 + h (A* + B*)

    A* depends on the state at t only. It is evaluated at the end of the previous step and cached in the state, so that
    Newton iterations do not evaluate A, and A is not differentiated: one evaluation per step. (A shorter last step uses
    the A* of a full step, which does not reduce the order.) The unknown is the mean velocity ``(q1 - q0)/h``; without
    cheap forces, or with b = 0, the step is explicit. As A is not differentiated, it may be a `livens.ExternalForce`.

    On Systems this is chapter 4.2 of S003: rigid bodies move on the rotation group (gyroscopic terms belong to A),
    masses may depend on the configuration (inertial forces are evaluated at the midpoint), constraints have
    multipliers, and every cheap element may have its own beta. Only velocities with forces B or constraints are
    unknowns; linear springs and dampers on one coordinate each are solved in closed form.

    Stable for ``b >= 1/2`` and any stiffness and damping in B, if those of A are in the region of theorem 3. Of order 2
    for ``a = b = 1/2`` if A does not depend on velocities, else of order 1. Symmetric for these values, so that it can
    be composed (A is then evaluated within the steps); symplectic only if the Hessians of A and B commute.

    With a scaling s, steps in time are ``h = eps s`` (eq. 14). The estimate (15), `livens.scaling.stiffness_estimate`,
    evaluates A at two more points; the largest stable eps is then 2.

    With a tolerance (`livens.StepControl`) step sizes follow an estimate of the local error, see
    `discretization.force_history`. A is then extrapolated to the evaluation point of a longer or shorter step; it is
    evaluated once per accepted step, and not in rejected steps.
    """

    family = "semi-explicit:<alpha>,<beta>"
    examples: ClassVar[tuple[tuple[Any, ...], ...]] = ((0.5, 0.5), (0.5, 0.6))
    symplectic = symmetric = False
    conserves = ()
    summary, source = "expensive forces once per step, cheap ones implicit", "S003 paper V (5)"

    forms = ("phase space", "elements", "crowd")
    takes_black_boxes = True
    #: Forces of previous steps are part of the state, for error-controlled steps.
    history: bool = False

    def __init__(
        self, alpha: float, beta: float, scaling: Scaling | StiffnessEstimate | None = None, kept: bool = True
    ) -> None:
        self.alpha, self.beta, self.scaling = alpha, beta, scaling
        #: A is cached from the end of the previous step; not in substeps of a composition, which differ in size.
        self.kept = kept
        self.symmetric = alpha == beta == 0.5
        self.name = f"semi-explicit:{digits(alpha)},{digits(beta)}"
        self.order = 2 if alpha == beta == 0.5 else 1
        self.implicit, self.fictive = beta != 0.0, scaling is not None
        self.evaluations = 3 if isinstance(scaling, StiffnessEstimate) else 1

    def __eq__(self, other: object) -> bool:
        mine = self.name, self.scaling, self.kept, self.history
        return isinstance(other, SemiExplicit) and mine == (other.name, other.scaling, other.kept, other.history)

    def __hash__(self) -> int:
        return hash((self.name, self.scaling, self.kept, self.history))

    def controlled(self) -> Scheme:
        if self.fictive or not self.kept:
            return self
        made = copy.copy(self)
        made.history, made.estimate_order, made.implicit = True, self.order, True
        return made

    def composed(self) -> Scheme:
        return SemiExplicit(self.alpha, self.beta, self.scaling, kept=False)

    def scaled(self, scaling: Any) -> Scheme:
        if not isinstance(scaling, (Scaling, StiffnessEstimate)):
            if not callable(scaling):
                wanted = "takes a scaling such as livens.scaling.stiffness_estimate(1.0)"
                raise InputError(f"scheme '{self.name}' {wanted}, got {scaling!r}")
            scaling = written(scaling)
        if isinstance(scaling, StiffnessEstimate) and not self.alpha:
            raise InputError(f"the scaling {scaling} evaluates forces at alpha h, which is 0 in scheme '{self.name}'")
        return SemiExplicit(self.alpha, self.beta, scaling)

    def counted(self, steps: int, corrections: int) -> tuple[int, int]:
        """Return the counts of the expensive forces: once initially, then `evaluations_per_step` in each step."""
        return 1 + steps * self.evaluations, 0

    def missing(self, model: Any) -> list[str]:
        if isinstance(model, Crowd):
            return ["steps of equal size"] if self.fictive or not self.kept else []
        if not tells_elements_apart(model):
            missing = [*super().missing(model), *no_constant_mass(model)][:1]
            if not missing and getattr(model, "box", None) is not None and (self.fictive or not self.kept):
                missing = ["a fixed step size with an external force: no scaling, no composition"]
            return missing
        missing = [] if model.regular_mass or model.frames else ["a regular mass matrix"]
        if not model.quadratic_kinetic_energy:
            missing.append("a kinetic energy that is quadratic in the velocities")
        if model.rolls:
            missing.append("constraints on positions, not on velocities (rolling, gears)")
        if model.controls:
            missing.append("a model without sampled controllers")
        if self.history or (model.box is not None and (self.fictive or not self.kept)):
            missing.append("steps of equal size, or a model with a constant mass matrix and without constraints")
        if self.fictive and not all(twists(model).simple):
            missing.append("steps of equal size, or masses that do not depend on the configuration")
        return missing

    @property
    def ahead(self) -> Ahead:
        """Evaluation point of A."""
        return Ahead(self.alpha)

    def _split(self, model: System, dropped: Collection[int] = ()) -> SplitStep:
        scale = None if self.scaling is None else scale_of(model, self.scaling, self.alpha)
        return SplitStep(model, self.ahead, self.beta, self.kept, dropped, scale)

    def equations(self, model: Any, dropped: Collection[int] = ()) -> StepEquations:
        if isinstance(model, Crowd):
            return CrowdEquations(model, self.ahead.alpha, self.ahead.extrapolated)
        if tells_elements_apart(model):
            whole = functools.cache(lambda: self._split(model, dropped).equations())
            steps = () if self.fictive or not self.kept else loose_steps(model, self.ahead, self.beta)
            return LooseParts(model, loose_parts(model), steps, whole) if steps else whole()
        found = super().equations(model, dropped)
        box = phase_of(model).box
        if box is None:
            return found
        layout, n = found.layout, model.n
        return dataclasses.replace(found.flatten(), box=Box(box, layout["asked"].start, n, layout["box"].start))

    def explicit(self, model: Any) -> bool:
        if isinstance(model, Crowd):
            return True
        if isinstance(self.equations(model), LooseParts):
            return True
        return not self.equations(model).flatten().size if tells_elements_apart(model) else super().explicit(model)

    def add(self, model: Hamiltonian) -> dict[str, int]:
        kept = {"A": 2 * model.n + 1} if self.kept else {}
        boxed = {} if model.box is None else {"asked": 2 * model.n + 1, "box": model.n}
        past = ForceHistory.sizes(model.n) if self.history else {}
        return kept | ({"t": 1, "scale": 1} if self.fictive else {}) | boxed | past

    def memory(self, model: Any, values: Mapping[str, Any], k: Any, t: float, h: float) -> dict[str, Any]:
        if isinstance(model, Crowd):
            return {"A": crowd_start(model, self.ahead.alpha, values, k, h)}
        if tells_elements_apart(model):
            more: dict[str, Any] = {}
            if self.scaling is not None:
                of_state = scale_of(model, self.scaling, self.alpha)
                more = {"t": t, "scale": first_scale(model, of_state, self.scaling, values, t, h, k)}
                h *= more["scale"]
            if self.kept and not self.fictive and loose_steps(model, self.ahead, self.beta):
                return parts_start(model, self.ahead, values, t, h, k)
            return more | (at_start(model, self.ahead, values, t, h, k) if self.kept else {})
        phase, found = Phase(phase_of(model), k), dict[str, Any]()
        q, p = ca.DM(values["q"]), ca.DM(values["p"])
        if self.scaling is not None:
            # no previous step: use the evaluation point of the longest step
            last = h * self.scaling.limit**-0.5 if isinstance(self.scaling, StiffnessEstimate) else h
            scale = float(self._scale(phase, q, p, t, last, h))
            if not (np.isfinite(scale) and scale > 0):
                where = f"the scaling {self.scaling} is {scale:g} in the initial state"
                raise InputError(f"{where}; it must be finite and greater than 0")
            found = {"t": t, "scale": scale}
            h *= scale
        if self.history:  # the size of the first step is not determined yet
            h = 0.0
        if self.kept:
            found["A"] = np.array(self._ahead(phase, q, p, t, h)).ravel()
        if phase.model.box is not None:
            asked = np.array(self._asked(phase, q, p, t, h)).ravel()
            n = phase.n
            force = phase.model.box(asked[:n], asked[n : 2 * n], asked[2 * n], k)
            found |= {"asked": asked, "box": force}
        if self.history:
            found |= ForceHistory.start(self._expensive(SimpleNamespace(**found), phase.n), phase.n)
        return found

    @staticmethod
    def _expensive(kept: Any, n: int) -> Any:
        """Return the stored expensive forces, including an external force."""
        if not hasattr(kept, "box"):
            return kept.A
        return ca.vertcat(kept.A[:n] + kept.box, kept.A[n : 2 * n] + kept.box, kept.A[2 * n])

    def following(self, model: Any, q: Any, p: Any, t: Any, k: Any, h: Any) -> dict[str, Any]:
        """Return the expensive forces for equal steps; with a scaling, the step size depends on the previous step."""
        if self.fictive or not self.kept or isinstance(model, Crowd):
            return {}
        if getattr(model, "box", None) is not None:
            raise InputError("an external force has no derivatives")
        if tells_elements_apart(model):
            return {"A": from_momenta(model, self.ahead, q, p, t, h, k)}
        return {"A": self._ahead(Phase(phase_of(model), k), q, p, t, h)}

    def memory_expressions(self, model: Any, q: Any, p: Any, k: Any, t: float, h: float) -> dict[str, Any]:
        return self.following(model, q, p, t, k, h)

    def unknowns(self, model: Hamiltonian) -> dict[str, int]:
        state = ca.vertcat(model.q, model.v)
        felt = self.history or any(
            part and ca.depends_on(F - ca.gradient(V, model.q), state) for part, (V, F) in self._cheap(model).items()
        )
        return {"mean_velocity": model.n} if felt else {}

    def guess(self, phase: Phase, old: Any, h: Any, t: Any) -> Mapping[str, Any]:
        return {"mean_velocity": old.v}

    def step(self, phase: Phase, old: Any, x: Any, h: Any, t: Any) -> Step:
        m, n, new = phase.model, phase.n, {}
        eps, size, t = (h, h * old.scale, old.t) if self.fictive else (h, h, t)
        expensive = self._expensive(old, n) if self.kept else self._ahead(phase, old.q, old.p, t, size)
        past = ForceHistory(old, self.ahead.alpha, h) if self.history else None
        if past is not None:
            expensive = past.moved(expensive)
        A, A_free, A_rate = expensive[:n], expensive[n : 2 * n], expensive[2 * n]
        W = ca.Function("W", [m.k], [ca.densify(m.inverse_mass)])(phase.k)
        u = getattr(x, "mean_velocity", old.v)
        B, B_free, B_rate = ca.SX.zeros(n), ca.SX.zeros(n), ca.SX(0)
        for part, (V, F) in self._cheap(m).items():
            q_b, v_b, t_b = old.q + part * size * u, old.v + 2 * part * (u - old.v), t + part * size
            outputs = [ca.densify(F - ca.gradient(V, m.q)), ca.densify(F), ca.gradient(V, m.t)]
            pushed = ca.Function("B", [m.q, m.v, m.t, m.k], outputs)(q_b, v_b, t_b, phase.k)
            B, B_free, B_rate = B + pushed[0], B_free + pushed[1], B_rate + pushed[2]
        mean = old.v + size / 2 * (W @ (A + B))
        rows = [u - mean] if vars(x) else []
        u = u if vars(x) else mean
        q, p, t = old.q + size * u, old.p + size * (A + B), t + size
        supplied = size * (ca.dot(A_free + B_free, u) + A_rate + B_rate)
        if self.fictive:
            new = {"t": t, "scale": self._scale(phase, q, p, t, size, eps)}
            size = eps * new["scale"]
        if self.kept:
            new["A"] = self._ahead(phase, q, p, t, size, 2 * (u - old.v))
        if m.box is not None:
            new |= {"asked": self._asked(phase, q, p, t, size, 2 * (u - old.v)), "box": ca.SX.zeros(n)}
        error = None
        if past is not None:
            new |= past.next(self._expensive(old, n), A + B)
            places = [self.ahead.alpha, *self._cheap(m)]
            shifts = *(abs(0.5 - part) for part in places), self._by_velocity(m)
            error = past.estimate(m.coordinates, W, A + B, (old.q, old.p), (q, p), max(shifts))
        return Step({"q": q, "p": p, **new}, rows, supplied=supplied, error=error)

    def _cheap(self, model: Hamiltonian) -> dict[float, tuple[Any, Any]]:
        """Return potentials and non-conservative forces of the cheap forces, by evaluation point beta."""
        if not model.terms.by_beta:
            return {self.beta: (model.terms.V_cheap, model.terms.F_cheap)}
        found: dict[float, tuple[Any, Any]] = {}
        for own, (V, F) in model.terms.by_beta.items():
            part = self.beta if own is None else own
            known = found.get(part, (ca.SX(0), ca.SX.zeros(model.n)))
            found[part] = known[0] + V, known[1] + F
        return {part: own for part, own in found.items() if not (own[0].is_zero() and own[1].is_zero())}

    def _by_velocity(self, model: Hamiltonian) -> float:
        """Return the distance from the midpoint at which A uses velocities, in units of h; 0 if it does not."""
        sees = (model.box is not None and model.box.velocities) or ca.depends_on(model.A, model.v)
        return 0.5 if sees and not self.ahead.extrapolated else 0.0

    def _asked(self, phase: Phase, q: Any, p: Any, t: Any, h: Any, change: Any = 0.0) -> Any:
        """Return the query point of an external force: coordinates, velocities and time, as in `_explicit_force`."""
        v, a = phase.T_p(p), self.ahead.alpha
        speed = v + a * change if self.ahead.extrapolated else v
        return ca.vertcat(q + a * h * v, speed, t + a * h)

    def _ahead(self, phase: Phase, q: Any, p: Any, t: Any, h: Any, change: Any = 0.0) -> Any:
        """Return A* of a step of size h from this state, its non-conservative part, and ``dV/dt`` of its potentials.

        `change` is the velocity increment of the previous step.
        """
        m, v, a = phase.model, phase.T_p(p), self.ahead.alpha
        parts = ca.densify(ca.vertcat(m.A, m.terms.F_expensive, ca.gradient(m.terms.V_expensive, m.t)))
        speed = v + a * change if self.ahead.extrapolated else v
        return ca.Function("A", [m.q, m.v, m.t, m.k], [parts])(q + a * h * v, speed, t + a * h, phase.k)

    def _scale(self, phase: Phase, q: Any, p: Any, t: Any, last: Any, unit: Any) -> Any:
        """Return the scaling at this state, after a step of size `last`, with a `unit` of fictive time."""
        m, size, eps = phase.model, ca.SX.sym("h"), ca.SX.sym("eps")
        if isinstance(self.scaling, StiffnessEstimate):
            s = self.scaling.expression(m, size, self.alpha)
        elif isinstance(self.scaling, Stiffness):
            s = self.scaling.expression(m, Scalar(eps))
        else:
            assert self.scaling is not None
            s = self.scaling.expression(m)
        s = ca.Function("s", [m.q, m.p, m.v, m.t, m.k, size, eps], [s])
        return s(q, p, phase.T_p(p), t, phase.k, last, unit)
