"""Kernels of rigid-body steps: functions of one element type and of one body type."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import casadi as ca

from livens.models.element import ElementModel
from livens.schemes.recipes.elements import ElementEnergies, ElementScheme, State
from livens.schemes.recipes.frame_bodies import BodyInertia, BodyRecipe, BodyState, GGLBody
from livens.schemes.recipes.frame_chains import Chain, Slopes, chained


class FrameScheme:
    """Mixin of schemes for rigid bodies in director coordinates: body discretization and element contribution.

    The element contribution is that of an `ElementScheme` with midpoint velocities as unknowns, without kinetic energy.
    """

    body: type[BodyRecipe]
    #: Discretization of rotor bodies; None: rotors are discretized as other bodies.
    rotor_body: type[BodyRecipe] | None = None
    #: Body angular momenta are part of the state.
    spins: bool = True
    #: Constraints are enforced on velocity level too: `ggl_correction` and `hidden_constraint_terms` are defined.
    both_levels: bool = False

    def force_scheme(self) -> ElementScheme:
        """Return the element scheme whose contributions are the forces on the directors."""
        raise NotImplementedError

    def pull(self, e: ElementEnergies, q: Any, v_m: Any, gam: Any, h: Any, t: Any) -> Any:
        """Return the GGL correction of an element to the velocity."""
        raise NotImplementedError

    def hidden(
        self, e: ElementEnergies, q: Any, v_m: Any, v: Any, v1: Any, gam: Any, h: Any, t: Any
    ) -> tuple[Any, Any, Any]:
        """Return the hidden-constraint force, the hidden constraints, and the work of rheonomic constraints."""
        raise NotImplementedError


class FrameKernel:
    """Kernel of one element type, as functions of its local unknowns, state and parameters."""

    def __init__(self, scheme: FrameScheme, model: ElementModel, body: bool) -> None:
        model = _massless(model, body)
        n, m = model.n, model.m
        v_m, lam, gam = ca.SX.sym("v_m", n), _symbols("lam", m), _symbols("gam", m)
        q, v, v1, h, t = ca.SX.sym("q", n), ca.SX.sym("v", n), ca.SX.sym("v1", n), ca.SX.sym("h"), ca.SX.sym("t")
        energies, unknown = ElementEnergies(model), SimpleNamespace(v_m=v_m, lam=lam)
        share = scheme.force_scheme().share(energies, State(q=q, v=v_m, p=v_m), State(q=q + h * v_m), unknown, h, t)
        rows, constraints = ca.densify(ca.vertcat(*share.rows)), _dense(share.constraints, m)
        work = ca.densify(ca.vertcat(ca.SX(share.supplied), ca.SX(share.dissipated)))
        self.model, self.m, self.idle = model, m, not m and _zero(rows)
        arguments = [v_m, lam, q, h, t, model.k]
        self.share = ca.Function("share", arguments, [rows, constraints, work])
        #: Factored derivative with respect to v_m, where available; see `factored_tangent`.
        self.chain: Chain | None = chained(scheme.force_scheme(), model, arguments)
        by_v = ca.jacobian(rows, v_m) if self.chain is None else ca.SX(n, n)
        self.slopes = ca.Function("slopes", arguments, [by_v, ca.jacobian(rows, lam), ca.jacobian(constraints, v_m)])
        if scheme.both_levels and m:
            pull = ca.densify(scheme.pull(energies, q, v_m, gam, h, t))
            self.pull = ca.Function("pull", [v_m, gam, q, h, t, model.k], [pull])
            parts = scheme.hidden(energies, q, v_m, v, v1, gam, h, t)
            arguments = [v_m, gam, q, v, v1, h, t, model.k]
            self.hidden = ca.Function("hidden", arguments, [ca.densify(ca.SX(part)) for part in parts])
            by = [
                (pull, v_m),
                (pull, gam),
                *((parts[0], x) for x in (v_m, gam, v1)),
                *((parts[1], x) for x in (v_m, v1)),
            ]
            self.levels = Slopes(ca.Function("levels", arguments, [ca.jacobian(ca.SX(y), x) for y, x in by]))


class BodyKernel:
    """Kernel of one body type, as functions of its unknowns y, its state and its inertia.

    Arguments are ``(y, q, v, p, spin, mass, euler, h)``, followed by the residual and the GGL correction of the
    elements where needed. `q_increment_rate` returns ``(q1 - q0)/h``, `residual` the equations, `final_state` the parts
    of the state at t + h. `jacobians` returns the derivatives of the residual with respect to variations and to the
    element residuals, of the increment rate with respect to variations, and of y with respect to variations.
    """

    def __init__(self, recipe: BodyRecipe) -> None:
        self.recipe, n, count = recipe, recipe.d * (1 + recipe.count), recipe.count
        y, h, mass, euler = ca.SX.sym("y", recipe.size), ca.SX.sym("h"), ca.SX.sym("m"), ca.SX.sym("E", count, count)
        q, v, p, rows, pull = (ca.SX.sym(name, n) for name in ("q", "v", "p", "r", "f"))
        spin = _symbols("Pi", recipe.turning)
        old, inertia, moved = BodyState(q, v, p, spin), BodyInertia(mass, euler), recipe.moved(y, q, h)
        state = [y, q, v, p, spin, mass, euler, h]
        self.rate = ca.Function("rate", state, [moved.rate])
        self.velocity = ca.Function("velocity", [*state, pull], [recipe.velocity(moved, old, pull, inertia, h)])
        balance = recipe.balance(moved, old, rows, pull, inertia, h)
        self.balance = ca.Function("balance", [*state, rows, pull], [balance])
        new = recipe.end(moved, old, pull, inertia, h)
        self.end = ca.Function("end", [*state, pull], [new.q, new.v, new.p, new.spin])
        self.guess = ca.Function("guess", [q, v], [recipe.guess(q, v)])
        slopes = [*recipe.slopes(moved, old, rows, inertia, h), recipe.spread(moved), recipe.turn(moved, h)]
        self.slopes = ca.Function("slopes", [*state, rows], [ca.sparsify(part) for part in slopes])
        if isinstance(recipe, GGLBody):
            parts = [ca.sparsify(part) for part in recipe.level_slopes(moved, old, rows, pull, inertia, h)]
            self.levels = Slopes(ca.Function("levels", [*state, rows, pull], parts))


def _massless(model: ElementModel, body: bool) -> ElementModel:
    """Return the element type without kinetic energy and, for bodies, without rigidity constraints."""
    through = {role: given for role, given in model.through.items() if role != "kinetic"}
    parts = model.q, model.v, model.t, model.k, model.quaternions
    g = ca.SX(0, 1) if body else model.g[: model.on_position] if model.on_position else ca.SX(0, 1)
    return ElementModel(*parts, ca.SX(0), model.V, model.R, model.F, g, through, model.rates)


def _symbols(name: str, count: int) -> Any:
    return ca.SX.sym(name, count) if count else ca.SX(0, 1)


def _dense(blocks: Any, count: int) -> Any:
    return ca.densify(ca.vertcat(*blocks)) if count else ca.SX(0, 1)


def _zero(rows: Any) -> bool:
    return all(ca.SX(rows[i]).is_zero() for i in range(rows.numel()))
