"""One-parameter variational integrators (Modin 2009, 2.6.4)."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, ClassVar

import casadi as ca

from livens.models.hamiltonian.model import Hamiltonian
from livens.schemes.discretization.phase_space_map import HamiltonianFunctions, MapResult, MapScheme, format_number
from livens.types import Expr


class Variational(MapScheme):
    """Variational integrator of ``h L((1-a) q0 + a q1, (q1 - q0)/h)`` (Modin 2009, eq. 2.29), written with H::

        q_a = (1-a) q0 + a q1          p_a = a p0 + (1-a) p1          t_a = t0 + a h
        q1  = q0 + h dH/dp(q_a, p_a)   p1  = p0 + h f    f = -dH/dq(q_a, p_a) + F

    Of order 2 for ``a = 1/2`` (the implicit midpoint rule), else 1; always symplectic. The unknowns are
    ``v = (q1 - q0)/h`` and f, as few as the model allows: for a separable H with ``a = 1``, or with ``a = 0`` and
    velocity-independent forces, the step is explicit.
    """

    family = "variational:<alpha>"
    examples: ClassVar[tuple[tuple[Any, ...], ...]] = ((0.0,), (0.25,), (1.0,))
    symplectic = True
    conserves = ("momentum_maps",)
    summary, source = "variational, one point of evaluation; of order 2 for alpha = 1/2", "Modin 2009, (2.29)"
    when_to_use = "You study the variational family with one evaluation point."
    when_to_avoid = "You want order 2: use `implicit-midpoint`."

    def __init__(self, alpha: float) -> None:
        self.alpha, self.name = alpha, f"variational:{format_number(alpha)}"
        self.symmetric = alpha == 0.5
        self.order = 2 if self.symmetric else 1
        self.implicit = alpha not in (0.0, 1.0)

    def unknowns(self, model: Hamiltonian) -> dict[str, int]:
        if model.separable:
            explicit = self.alpha == 1.0 or (self.alpha == 0.0 and not ca.depends_on(model.F, model.v))
            return {} if explicit else {"v": model.n}
        names = {0.0: ("f",), 1.0: ("v",)}.get(self.alpha, ("v", "f"))
        if self.alpha == 0.0 and ca.depends_on(model.F, model.v):
            names = ("v", "f")
        return dict.fromkeys(names, model.n)

    def initial_guess(
        self, phase: HamiltonianFunctions, old: SimpleNamespace, h: Expr, t: Expr
    ) -> Mapping[str, object]:
        return {"v": old.v, "f": phase.F(old.q, old.v, t) - phase.H_q(old.q, old.p, t)}

    def step(
        self, phase: HamiltonianFunctions, old: SimpleNamespace, x: SimpleNamespace, h: Expr, t: Expr
    ) -> MapResult:
        a, residual = self.alpha, []
        t_a, solved = t + a * h, vars(x)

        def force(v: Any, p_a: Any) -> Any:
            q_a = old.q + a * h * v
            return phase.F(q_a, v, t_a) - phase.H_q(q_a, p_a, t_a)

        if phase.model.separable:
            # dH/dq = V' is independent of the momentum
            v = solved.get("v", phase.T_p(old.p) if a == 1.0 else old.v)
            f = force(v, old.p)
            p_a = old.p + (1 - a) * h * f
            if "v" in solved:
                residual = [v - phase.T_p(p_a)]
            else:
                v = phase.T_p(p_a)
        else:
            # p_a = p0 for a = 1, and q_a = q0 for a = 0: then v or f follows explicitly
            v = solved.get("v", None)
            p_a = old.p + (1 - a) * h * solved["f"] if "f" in solved else old.p
            velocity = phase.H_p(old.q + (a * h * v if v is not None else 0), p_a, t_a)
            residual = [v - velocity] if v is not None else []
            v = velocity if v is None else v
            f = force(v, p_a)
            residual += [solved["f"] - f] if "f" in solved else []
            f = solved.get("f", f)
        supplied, dissipated = phase.work(old.q + a * h * v, p_a, v, t_a)
        return MapResult(
            {"q": old.q + h * v, "p": old.p + h * f}, residual, supplied=h * supplied, dissipated=h * dissipated
        )


class ImplicitMidpoint(Variational):
    """Implicit midpoint rule: ``variational:0.5``. Quadratic invariants are conserved."""

    name = "implicit-midpoint"
    summary, source = "implicit midpoint rule, in coordinates and momenta", "Modin 2009, 2.6.4"
    when_to_use = "Hamiltonian systems that are not separable, or stiff, with order 2."
    when_to_avoid = "Constraints: use `livens-midpoint`."

    def __init__(self) -> None:
        super().__init__(0.5)
        self.name = "implicit-midpoint"


class SymmetricVariational(MapScheme):
    """Symmetric variational integrator: mean of the discrete Lagrangians for a and 1 - a (Modin 2009, eq. 2.30).

    With ``v = (q1 - q0)/h``, points ``q_a = q0 + a h v``, ``q_b = q0 + (1-a) h v``, and one momentum at each point,
    ``v = dH/dp(q_a, p_A) = dH/dp(q_b, p_B)``::

        (p_A + p_B)/2 = p0 + h/2 ((1-a) f_A + a f_B)     p1 = p0 + h/2 (f_A + f_B)     f = -dH/dq + F

    For a separable H both momenta are equal. Of order 2, symmetric and symplectic for every a. ``a = 0`` is the
    Stoermer-Verlet scheme, explicit for a separable H with velocity-independent forces; ``a = 1/2`` is the implicit
    midpoint rule; 1 - a is equivalent to a.
    """

    family = "variational-sym:<alpha>"
    examples: ClassVar[tuple[tuple[Any, ...], ...]] = ((0.0,), (0.25,))
    order, symplectic, symmetric = 2, True, True
    evaluations_per_step = 2
    conserves = ("momentum_maps",)
    summary, source = "variational, two points of evaluation", "Modin 2009, (2.30)"
    when_to_use = "You study the symmetric variational family with two evaluation points."
    when_to_avoid = "You want the explicit member: use `stormer-verlet`."

    def __init__(self, alpha: float) -> None:
        self.alpha, self.name = alpha, f"variational-sym:{format_number(alpha)}"
        self.implicit = alpha not in (0.0, 1.0)

    def unknowns(self, model: Hamiltonian) -> dict[str, int]:
        if self.alpha == 0.5:
            return Variational(0.5).unknowns(model)
        if model.separable:
            explicit = not self.implicit and not ca.depends_on(model.F, model.v)
            return {} if explicit else {"v": model.n}
        return {"v": model.n, "p_A": model.n, "p_B": model.n}

    def initial_guess(
        self, phase: HamiltonianFunctions, old: SimpleNamespace, h: Expr, t: Expr
    ) -> Mapping[str, object]:
        return {**Variational(0.5).initial_guess(phase, old, h, t), "p_A": old.p, "p_B": old.p}

    def step(
        self, phase: HamiltonianFunctions, old: SimpleNamespace, x: SimpleNamespace, h: Expr, t: Expr
    ) -> MapResult:
        if self.alpha == 0.5:
            return Variational(0.5).step(phase, old, x, h, t)
        a, residual = min(self.alpha, 1 - self.alpha), []  # the smaller value, so that a = 0 gives q_a = q0
        solved = vars(x)
        v = solved.get("v", old.v)

        def force(theta: float, p: object) -> Any:
            q = old.q + theta * h * v
            return phase.F(q, v, t + theta * h) - phase.H_q(q, p, t + theta * h)

        if phase.model.separable:
            f_A = force(a, old.p)
            p_m = old.p + h / 2 * (1 - a) * f_A + (h / 2 * a * force(1 - a, old.p) if a else 0)
            if "v" in solved:
                residual = [v - phase.T_p(p_m)]
            else:
                v = phase.T_p(p_m)
            p_A = p_B = p_m
            f_B = force(1 - a, old.p)
        else:
            p_A, p_B = x.p_A, x.p_B
            f_A, f_B = force(a, p_A), force(1 - a, p_B)
            residual = [
                v - phase.H_p(old.q + a * h * v, p_A, t + a * h),
                v - phase.H_p(old.q + (1 - a) * h * v, p_B, t + (1 - a) * h),
                (p_A + p_B) / 2 - old.p - h / 2 * ((1 - a) * f_A + a * f_B),
            ]
        work_A = phase.work(old.q + a * h * v, p_A, v, t + a * h)
        work_B = phase.work(old.q + (1 - a) * h * v, p_B, v, t + (1 - a) * h)
        return MapResult(
            {"q": old.q + h * v, "p": old.p + h / 2 * (f_A + f_B)},
            residual,
            supplied=h / 2 * (work_A[0] + work_B[0]),
            dissipated=h / 2 * (work_A[1] + work_B[1]),
        )
