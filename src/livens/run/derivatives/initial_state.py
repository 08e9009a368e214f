"""Forward, adjoint and second-order sensitivities of the initial state to initial values, parameters and h.

The initial state is a composition of maps of the inputs. For a mechanical system: projection of the positions onto the
constraints, projection of the velocities, then the momenta and the extra state of the scheme. Inconsistent values are
projected to the nearest consistent ones, so a perturbation off the constraints counts as its projection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens.engine.compiled_step import CompiledStep
from livens.errors import InputError
from livens.expressions.evaluate import Evaluator
from livens.models import lapack
from livens.models.base import InitialState
from livens.models.descriptor import DescriptorModel
from livens.models.equations_of_motion import equations_of_motion
from livens.models.first_order import FirstOrder
from livens.models.hamiltonian.model import Hamiltonian
from livens.models.port_hamiltonian.initialization import projection_derivatives
from livens.models.port_hamiltonian.model import PortHamiltonian
from livens.models.system import System
from livens.run.plan import Plan
from livens.types import Expr

#: Relative rank tolerance of the pseudo-inverse: constraints may be redundant at the initial state.
_RANK_RTOL = 1e-10
#: Reciprocal condition number above which a Jacobian is inverted by LU instead of the pseudo-inverse.
_MIN_RCOND = 1e-9
#: Energy terms of the state, which are always initially zero.
_ENERGY_TERMS = ("supplied_energy", "dissipated_energy")


class ImplicitMap:
    """Implicit map ``w -> e(x, w)`` with ``r(x; w) = 0``, and its first and second derivatives."""

    def __init__(self, w: Expr, output: Expr, x: Expr | None = None, residual: Expr | None = None) -> None:
        x = ca.SX(0, 1) if x is None else x
        residual = ca.SX(0, 1) if residual is None else ca.densify(residual)
        self.n_unknowns = int(x.numel())
        output = ca.densify(output)
        self._residual = Evaluator([x, w], [residual])
        self._jacobians = Evaluator([x, w], [ca.jacobian(part, wrt) for part in (residual, output) for wrt in (x, w)])
        a, mu = ca.SX.sym("a", output.numel()), ca.SX.sym("mu", residual.numel())
        dx, dw, da, dmu = (ca.SX.sym(f"d{i}", part.numel()) for i, part in enumerate((x, w, a, mu)))
        lagrangian = ca.dot(a, output) - (ca.dot(mu, residual) if self.n_unknowns else 0)
        grad_x, grad_w = (ca.densify(ca.gradient(lagrangian, part)) if part.numel() else part for part in (x, w))
        point, direction = ca.vertcat(x, w, a), ca.vertcat(dx, dw, da)
        d_grad_x = ca.jtimes(grad_x, point, direction) if self.n_unknowns else ca.SX(0, 1)
        d_grad_w = ca.jtimes(grad_w, ca.vertcat(point, mu), ca.vertcat(direction, dmu))
        self._d_lagrangian_x = Evaluator([x, w, a, mu, dx, dw, da], [d_grad_x])
        self._d_lagrangian_w = Evaluator([x, w, a, mu, dx, dw, da, dmu], [d_grad_w])

    def linearize(self, x: np.ndarray, w: np.ndarray) -> Linearization:
        return Linearization(self, x, w, *self._jacobians(x, w))

    def solve_affine(self, w: np.ndarray) -> np.ndarray:
        """Return the unknowns of a residual that is affine in them."""
        zero = np.zeros(self.n_unknowns)
        return np.asarray(-(_inverse(self._jacobians(zero, w)[0]) @ self._residual(zero, w)[0].ravel()))

    def vjp_jvp(self, linearization: Linearization, a: np.ndarray, da: np.ndarray, dw: np.ndarray) -> np.ndarray:
        """Return the derivative of the vector-Jacobian product along dw; the cotangent a changes by da."""
        mu, dx = linearization.adjoint_unknowns(a), linearization.d_unknowns(dw)
        rhs = self._d_lagrangian_x(linearization.x, linearization.w, a, mu, dx, dw, da)[0].ravel()
        dmu = linearization.jacobian_inverse.T @ rhs
        return np.asarray(self._d_lagrangian_w(linearization.x, linearization.w, a, mu, dx, dw, da, dmu)[0].ravel())


@dataclass(frozen=True)
class Linearization:
    """Implicit map linearised at one point: the Jacobians of residual and output."""

    map: ImplicitMap
    x: np.ndarray
    w: np.ndarray
    r_x: np.ndarray
    r_w: np.ndarray
    e_x: np.ndarray
    e_w: np.ndarray

    @property
    def jacobian_inverse(self) -> np.ndarray:
        cached: np.ndarray | None = self.__dict__.get("_inverse")
        if cached is None:
            cached = self.__dict__["_inverse"] = _inverse(self.r_x)
        return cached

    def d_unknowns(self, dw: np.ndarray) -> np.ndarray:
        return np.asarray(-(self.jacobian_inverse @ (self.r_w @ dw)))

    def adjoint_unknowns(self, a: np.ndarray) -> np.ndarray:
        return np.asarray(self.jacobian_inverse.T @ (self.e_x.T @ a))

    def jvp(self, dw: np.ndarray) -> np.ndarray:
        return np.asarray(self.e_w @ dw + self.e_x @ self.d_unknowns(dw))

    def vjp(self, a: np.ndarray) -> np.ndarray:
        return np.asarray(self.e_w.T @ a - self.r_w.T @ self.adjoint_unknowns(a))

    def vjp_jvp(self, a: np.ndarray, da: np.ndarray, dw: np.ndarray) -> np.ndarray:
        return self.map.vjp_jvp(self, a, da, dw)


def _inverse(matrix: np.ndarray) -> np.ndarray:
    """Return the inverse, or for redundant constraints the pseudo-inverse (about 100 times slower)."""
    if not matrix.size:
        return matrix.T
    factors, pivots, info = lapack.dgetrf(matrix)
    if not info and lapack.dgecon(factors, np.abs(matrix).sum(axis=0).max())[0] > _MIN_RCOND:
        return np.asarray(lapack.dgetri(factors, pivots)[0])
    return np.asarray(np.linalg.pinv(matrix, rcond=_RANK_RTOL))


@dataclass(frozen=True)
class LinearMap:
    """Linear map without second derivatives."""

    matrix: np.ndarray

    def jvp(self, dw: np.ndarray) -> np.ndarray:
        return np.asarray(self.matrix @ dw)

    def vjp(self, a: np.ndarray) -> np.ndarray:
        return np.asarray(self.matrix.T @ a)

    def vjp_jvp(self, a: np.ndarray, da: np.ndarray, dw: np.ndarray) -> np.ndarray:
        raise InputError("second derivatives by the initial values are not available for algebraic equations")


@dataclass(frozen=True)
class InputTangent:
    """Tangent or cotangent of the inputs of a run: initial values by name, parameter vector and h."""

    initial: dict[str, np.ndarray]
    k: np.ndarray
    h: float = 0.0


class InitialStateDerivatives:
    """Sensitivities of the initial state with respect to the inputs of a plan, at its initial values."""

    def __init__(self, plan: Plan, compiled: CompiledStep, initial: InitialState) -> None:
        self._layout, self._k = compiled.layout, plan.k
        model = compiled.model
        initial_values = {
            name: np.asarray(value, dtype=float) for name, value in plan.start.items() if value is not None
        }
        self.input_names = _input_names(model, initial_values)
        key = "initial state derivatives", self.input_names, plan.t0
        maps: InitializationMaps = compiled.cached(key, lambda: _build_maps(compiled, self.input_names, plan.t0))
        self._linearizations: list[Linearization | LinearMap] = []
        tail = np.append(plan.k, plan.h)
        self._sizes = [initial[name].size for name in maps.parts]
        if isinstance(model, PortHamiltonian):
            self._linearizations.append(_algebraic_projection_map(model, initial, plan.k, plan.t0))
        values = {f"{name}0": initial[name] for name in ("q", "v", "p", "x") if name in initial.values}
        current = {
            **values,
            **{name: initial_values[name] for name in self.input_names if name in initial_values and maps.project},
        }
        for stage, unknown in zip(maps.maps, maps.unknown_names, strict=True):
            w = np.concatenate([*(current[f"{name}0"] for name in maps.parts), tail])
            x = np.zeros(stage.n_unknowns)
            if unknown == "multipliers":
                x = stage.solve_affine(w)
            elif unknown:
                size = initial[unknown].size
                x[:size] = initial[unknown]
                if maps.project:  # the projection distance is a combination of the constraint gradients
                    gap = current[f"{unknown}0"] - initial[unknown]
                    constraint_gradients = stage.linearize(x, w).r_x[:size, size:]
                    x[size:] = np.linalg.pinv(constraint_gradients, rcond=_RANK_RTOL) @ gap
                    current = {**current, f"{unknown}0": initial[unknown]}
            self._linearizations.append(stage.linearize(x, w))

    # -- derivatives --------------------------------------------------------------------------------------------------
    def jvp(self, tangent: InputTangent) -> np.ndarray:
        """Return the tangent of the initial state."""
        w = self._pack(tangent)
        for linearization in self._linearizations:
            w = linearization.jvp(w)
        return w[: self._layout.size]

    def vjp(self, a: np.ndarray, grad_k: np.ndarray, grad_h: float = 0.0) -> InputTangent:
        """Return the cotangent of the inputs from the cotangents of the initial state, parameters and h."""
        a = np.concatenate([a, grad_k, [grad_h]])
        for linearization in reversed(self._linearizations):
            a = linearization.vjp(a)
        return self._unpack(a)

    def vjp_jvp(
        self,
        a: np.ndarray,
        da: np.ndarray,
        grad_k: np.ndarray,
        d_grad_k: np.ndarray,
        grad_h: Sequence[float],
        tangent: InputTangent,
    ) -> tuple[InputTangent, InputTangent]:
        """Return the result of `vjp` and its derivative along a tangent of the inputs."""
        tangents = [self._pack(tangent)]
        for linearization in self._linearizations:
            tangents.append(linearization.jvp(tangents[-1]))
        a, da = np.concatenate([a, grad_k, [grad_h[0]]]), np.concatenate([da, d_grad_k, [grad_h[1]]])
        for linearization, dw in zip(reversed(self._linearizations), reversed(tangents[:-1]), strict=True):
            a, da = linearization.vjp(a), linearization.vjp_jvp(a, da, dw)
        return self._unpack(a), self._unpack(da)

    def _pack(self, tangent: InputTangent) -> np.ndarray:
        parts = [
            tangent.initial.get(name, np.zeros(size)) for name, size in zip(self.input_names, self._sizes, strict=True)
        ]
        return np.concatenate([*parts, tangent.k, [tangent.h]])

    def _unpack(self, w: np.ndarray) -> InputTangent:
        offsets = np.cumsum(self._sizes)
        parts = np.split(w[: -1 - self._k.size], offsets[:-1])
        return InputTangent(dict(zip(self.input_names, parts, strict=True)), w[offsets[-1] : -1], float(w[-1]))


@dataclass(frozen=True)
class InitializationMaps:
    """Composed maps from the inputs to the initial state, and the names of their unknowns (empty string if none)."""

    parts: tuple[str, ...]
    maps: list[ImplicitMap]
    unknown_names: list[str]
    project: bool


def _input_names(model: Any, initial_values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the initial values that are differentiated."""
    if isinstance(model, System):
        return "q0", "v0"
    if isinstance(model, Hamiltonian):
        return ("q0", "p0") if "p0" in initial_values else ("q0", "v0")
    if isinstance(model, DescriptorModel):
        return ("x0",)
    if "discrete Lagrangian" in model.formulations:
        return "q0", "p0"
    raise InputError(f"derivatives by the initial values of {model.type_label} are not available: use a System")


def _build_maps(compiled: CompiledStep, names: tuple[str, ...], t0: float) -> InitializationMaps:
    model, layout = compiled.model, compiled.layout
    parts = tuple(name.removesuffix("0") for name in names)
    k, h = ca.SX.sym("k", model.parameter_count), ca.SX.sym("h")
    symbols = {name: ca.SX.sym(name, len(model.coordinates)) for name in parts}
    w = ca.vertcat(*symbols.values(), k, h)
    if isinstance(model, System):
        maps, unknown_names = _projection_maps(model, symbols, k, h, t0)
        d = equations_of_motion(model)
        p = ca.Function("p", [d.q, d.v, d.t, d.k], [d.fibre_derivative])(symbols["q"], symbols["v"], t0, k)
        state = {**symbols, "p": ca.densify(p)}
        project = bool(maps)
    elif isinstance(model, Hamiltonian):
        maps, unknown_names, project = [], [], False
        q, p = symbols["q"], symbols.get("p", ca.SX.sym("p", model.n))
        v = model.function(model.velocity)(q, p, t0, k)
        state = {"q": q, "v": v, "p": p}
        if "p" not in parts:  # momenta of the given velocities
            maps, unknown_names = [ImplicitMap(w, ca.vertcat(q, p, k, h), p, v - symbols["v"])], ["p"]
            w = ca.vertcat(q, p, k, h)
    else:
        maps, unknown_names, project, state = [], [], False, dict(symbols)
        if isinstance(model, FirstOrder) and model.m:
            return _algebraic_map(compiled, model, symbols["x"], k, h, t0)
    state |= _scheme_state(compiled, state, k, h, t0)
    missing = _missing_parts(compiled, state)
    unknown, x, residual = "", None, None
    if isinstance(model, System) and "multipliers" in missing:
        unknown = missing.pop(missing.index("multipliers"))
        x, residual = _multiplier_equations(compiled, model, state["q"], state["v"], k, t0)
        state[unknown] = x[model.n :]
    if missing:
        raise InputError(
            f"scheme '{compiled.scheme.name}' starts from '{missing[0]}', which has no derivatives by the inputs"
        )
    full_state = [state.get(name, ca.SX.zeros(size)) for name, size in layout.sizes.items()]
    maps.append(ImplicitMap(w, ca.vertcat(*full_state, k, h), x, residual))
    return InitializationMaps(parts, maps, [*unknown_names, unknown], project)


def _projection_maps(
    system: System, symbols: Mapping[str, Expr], k: Expr, h: Expr, t0: float
) -> tuple[list[ImplicitMap], list[str]]:
    """Return the maps to the nearest consistent position, then to the nearest consistent velocity."""
    d = equations_of_motion(system)
    if not system.m:
        return [], []
    q, v, multipliers = symbols["q"], symbols["v"], ca.SX.sym("nu", system.m)
    projected = ca.SX.sym("new", system.n)
    constraints = ca.Function("g", [d.q, d.v, d.t, d.k], [d.g, d.G, d.velocity_constraint])
    w, x = ca.vertcat(q, v, k, h), ca.vertcat(projected, multipliers)
    g, G, _ = constraints(projected, v, t0, k)
    position = ImplicitMap(w, ca.vertcat(projected, v, k, h), x, ca.vertcat(projected - q + G.T @ multipliers, g))
    _, G, rate = constraints(q, projected, t0, k)
    velocity = ImplicitMap(w, ca.vertcat(q, projected, k, h), x, ca.vertcat(projected - v + G.T @ multipliers, rate))
    return [position, velocity], ["q", "v"]


def _scheme_state(compiled: CompiledStep, state: Mapping[str, Expr], k: Any, h: Any, t0: float) -> dict[str, Expr]:
    """Return the extra state of the scheme as expressions."""
    if "q" not in state or "p" not in state:
        return {}
    q, p = ca.SX.sym("q", state["q"].numel()), ca.SX.sym("p", state["p"].numel())
    expressions = compiled.scheme.symbolic_scheme_state(compiled.model, q, p, k, t0, h)
    return {
        name: ca.Function("memory", [q, p, k, h], [ca.densify(part)])(state["q"], state["p"], k, h)
        for name, part in expressions.items()
    }


def _missing_parts(compiled: CompiledStep, state: Mapping[str, Expr]) -> list[str]:
    """Return the parts of the state that the steps depend on and that have no expression."""
    e = compiled.flat_equations
    step = ca.vertcat(e.residual, e.final_state)
    return [
        name
        for name, size in compiled.layout.sizes.items()
        if size and name not in state and name not in _ENERGY_TERMS and ca.depends_on(step, e.z[compiled.layout[name]])
    ]


def _multiplier_equations(
    compiled: CompiledStep, system: System, q: Expr, v: Expr, k: Expr, t0: float
) -> tuple[Expr, Expr]:
    """Return accelerations and multipliers as unknowns, and the residual of the KKT system; zero if removed."""
    d, n = equations_of_motion(system), system.n
    x = ca.SX.sym("a", n + system.m)
    matrix, rhs = ca.Function("kkt", [d.q, d.v, d.t, d.k], list(d.kkt_system))(q, v, t0, k)
    residual = ca.densify(matrix @ x - rhs)
    for i in compiled.removed_constraints:
        residual[n + i] = x[n + i]
    return x, residual


def _algebraic_map(
    compiled: CompiledStep, model: FirstOrder, x: Expr, k: Expr, h: Expr, t0: float
) -> InitializationMaps:
    """Return the map to the algebraic variables, which are determined by the constraints."""
    d, y = model.descriptor, ca.SX.sym("y", model.m)
    jacobian = ca.jacobian(model.g, d.x)[:, model.n :]
    if ca.sprank(jacobian) < model.m:
        raise InputError("derivatives by the initial values are not available: the constraints do not determine y")
    g = ca.Function("g", [d.x, d.t, d.k], [model.g])(ca.vertcat(x, y), t0, k)
    full_state = [{"x": x, "y": y}.get(name, ca.SX.zeros(size)) for name, size in compiled.layout.sizes.items()]
    return InitializationMaps(
        ("x",), [ImplicitMap(ca.vertcat(x, k, h), ca.vertcat(*full_state, k, h), y, g)], ["y"], False
    )


def _algebraic_projection_map(model: PortHamiltonian, initial: InitialState, k: np.ndarray, t0: float) -> LinearMap:
    """Return the linearised projection of the algebraic states of a descriptor system."""
    d_x, d_k = projection_derivatives(model, initial["x"], t0, k)
    matrix = np.eye(initial["x"].size + k.size + 1)
    matrix[: d_x.shape[0], : d_x.shape[1]] = d_x
    matrix[: d_k.shape[0], d_x.shape[1] : -1] = d_k
    return LinearMap(matrix)
