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
from scipy.linalg import lapack

from livens.engine.compiled import CompiledStep
from livens.errors import InputError
from livens.expressions.evaluate import Evaluator
from livens.models.descriptor import DescriptorModel
from livens.models.first_order import FirstOrder
from livens.models.hamiltonian.model import Hamiltonian
from livens.models.model import InitialState
from livens.models.port_hamiltonian.model import PortHamiltonian
from livens.models.port_hamiltonian.start import algebraic_projection
from livens.models.summed import dynamics
from livens.models.system import System
from livens.run.plan import Plan

#: Relative rank tolerance of the pseudo-inverse: constraints may be redundant at the initial state.
_RANK = 1e-10
#: Reciprocal condition number above which a Jacobian is inverted by LU instead of the pseudo-inverse.
_REGULAR = 1e-9
#: Energy terms of the state, which are always initially zero.
_ACCOUNTS = ("supplied_energy", "dissipated_energy")


class Map:
    """Implicit map ``w -> e(x, w)`` with ``r(x; w) = 0``, and its first and second derivatives."""

    def __init__(self, w: Any, end: Any, x: Any = None, residual: Any = None) -> None:
        x = ca.SX(0, 1) if x is None else x
        residual = ca.SX(0, 1) if residual is None else ca.densify(residual)
        self.unknowns = int(x.numel())
        end = ca.densify(end)
        self._slopes = Evaluator([x, w], [ca.jacobian(part, by) for part in (residual, end) for by in (x, w)])
        a, mu = ca.SX.sym("a", end.numel()), ca.SX.sym("mu", residual.numel())
        dx, dw, da, dmu = (ca.SX.sym(f"d{i}", part.numel()) for i, part in enumerate((x, w, a, mu)))
        lagrangian = ca.dot(a, end) - (ca.dot(mu, residual) if self.unknowns else 0)
        by_x, by_w = (ca.densify(ca.gradient(lagrangian, part)) if part.numel() else part for part in (x, w))
        at, along = ca.vertcat(x, w, a), ca.vertcat(dx, dw, da)
        turned = ca.jtimes(by_x, at, along) if self.unknowns else ca.SX(0, 1)
        changed = ca.jtimes(by_w, ca.vertcat(at, mu), ca.vertcat(along, dmu))
        self._turned = Evaluator([x, w, a, mu, dx, dw, da], [turned])
        self._changed = Evaluator([x, w, a, mu, dx, dw, da, dmu], [changed])

    def at(self, x: np.ndarray, w: np.ndarray) -> Place:
        return Place(self, x, w, *self._slopes(x, w))

    def second(self, here: Place, a: np.ndarray, da: np.ndarray, dw: np.ndarray) -> np.ndarray:
        """Return the derivative of the vector-Jacobian product along dw; the cotangent a changes by da."""
        mu, dx = here.multipliers(a), here.unknowns(dw)
        right = self._turned(here.x, here.w, a, mu, dx, dw, da)[0].ravel()
        dmu = here.inverse.T @ right
        return np.asarray(self._changed(here.x, here.w, a, mu, dx, dw, da, dmu)[0].ravel())


@dataclass(frozen=True)
class Place:
    """Implicit map linearised at one point: the Jacobians of residual and output."""

    map: Map
    x: np.ndarray
    w: np.ndarray
    r_x: np.ndarray
    r_w: np.ndarray
    e_x: np.ndarray
    e_w: np.ndarray

    @property
    def inverse(self) -> np.ndarray:
        known: np.ndarray | None = self.__dict__.get("_inverse")
        if known is None:
            known = self.__dict__["_inverse"] = _inverse(self.r_x)
        return known

    def unknowns(self, dw: np.ndarray) -> np.ndarray:
        return np.asarray(-(self.inverse @ (self.r_w @ dw)))

    def multipliers(self, a: np.ndarray) -> np.ndarray:
        return np.asarray(self.inverse.T @ (self.e_x.T @ a))

    def forth(self, dw: np.ndarray) -> np.ndarray:
        return np.asarray(self.e_w @ dw + self.e_x @ self.unknowns(dw))

    def back(self, a: np.ndarray) -> np.ndarray:
        return np.asarray(self.e_w.T @ a - self.r_w.T @ self.multipliers(a))

    def second(self, a: np.ndarray, da: np.ndarray, dw: np.ndarray) -> np.ndarray:
        return self.map.second(self, a, da, dw)


def _inverse(matrix: np.ndarray) -> np.ndarray:
    """Return the inverse, or for redundant constraints the pseudo-inverse (about 100 times slower)."""
    if not matrix.size:
        return matrix.T
    factors, pivots, info = lapack.dgetrf(matrix)
    if not info and lapack.dgecon(factors, np.abs(matrix).sum(axis=0).max())[0] > _REGULAR:
        return np.asarray(lapack.dgetri(factors, pivots)[0])
    return np.asarray(np.linalg.pinv(matrix, rcond=_RANK))


@dataclass(frozen=True)
class Fixed:
    """Linear map without second derivatives."""

    matrix: np.ndarray

    def forth(self, dw: np.ndarray) -> np.ndarray:
        return np.asarray(self.matrix @ dw)

    def back(self, a: np.ndarray) -> np.ndarray:
        return np.asarray(self.matrix.T @ a)

    def second(self, a: np.ndarray, da: np.ndarray, dw: np.ndarray) -> np.ndarray:
        raise InputError("second derivatives by the initial values are not available for algebraic equations")


@dataclass(frozen=True)
class Shift:
    """Tangent or cotangent of the inputs of a run: initial values by name, parameter vector and h."""

    start: dict[str, np.ndarray]
    k: np.ndarray
    h: float = 0.0


class Departure:
    """Sensitivities of the initial state with respect to the inputs of a plan, at its initial values."""

    def __init__(self, plan: Plan, compiled: CompiledStep, initial: InitialState) -> None:
        self._layout, self._k = compiled.layout, plan.k
        model = compiled.model
        given = {name: np.asarray(value, dtype=float) for name, value in plan.start.items() if value is not None}
        self.names = _names(model, given)
        key = "initial state derivatives", self.names, plan.t0
        maps: Maps = compiled.once(key, lambda: _maps(compiled, self.names, plan.t0))
        self._places: list[Place | Fixed] = []
        tail = np.append(plan.k, plan.h)
        self._sizes = [initial[name].size for name in maps.parts]
        if isinstance(model, PortHamiltonian):
            self._places.append(_algebraic(model, initial, plan.k, plan.t0))
        values = {f"{name}0": initial[name] for name in ("q", "v", "p", "x") if name in initial.values}
        here = {**values, **{name: given[name] for name in self.names if name in given and maps.project}}
        for stage, unknown in zip(maps.maps, maps.unknowns, strict=True):
            w = np.concatenate([*(here[f"{name}0"] for name in maps.parts), tail])
            x = np.zeros(stage.unknowns)
            if unknown:
                size = initial[unknown].size
                x[:size] = initial[unknown]
                if maps.project:  # the projection distance is a combination of the constraint gradients
                    gap = here[f"{unknown}0"] - initial[unknown]
                    slopes = stage.at(x, w).r_x[:size, size:]
                    x[size:] = np.linalg.pinv(slopes, rcond=_RANK) @ gap
                    here = {**here, f"{unknown}0": initial[unknown]}
            self._places.append(stage.at(x, w))

    # -- derivatives --------------------------------------------------------------------------------------------------
    def forth(self, shift: Shift) -> np.ndarray:
        """Return the tangent of the initial state."""
        w = self._joined(shift)
        for place in self._places:
            w = place.forth(w)
        return w[: self._layout.size]

    def back(self, a: np.ndarray, by_k: np.ndarray, by_h: float = 0.0) -> Shift:
        """Return the cotangent of the inputs from the cotangents of the initial state, parameters and h."""
        a = np.concatenate([a, by_k, [by_h]])
        for place in reversed(self._places):
            a = place.back(a)
        return self._parted(a)

    def second(
        self, a: np.ndarray, da: np.ndarray, by_k: np.ndarray, dby_k: np.ndarray, by_h: Sequence[float], shift: Shift
    ) -> tuple[Shift, Shift]:
        """Return the result of `vjp` and its derivative along a tangent of the inputs."""
        ways = [self._joined(shift)]
        for place in self._places:
            ways.append(place.forth(ways[-1]))
        a, da = np.concatenate([a, by_k, [by_h[0]]]), np.concatenate([da, dby_k, [by_h[1]]])
        for place, dw in zip(reversed(self._places), reversed(ways[:-1]), strict=True):
            a, da = place.back(a), place.second(a, da, dw)
        return self._parted(a), self._parted(da)

    def _joined(self, shift: Shift) -> np.ndarray:
        parts = [shift.start.get(name, np.zeros(size)) for name, size in zip(self.names, self._sizes, strict=True)]
        return np.concatenate([*parts, shift.k, [shift.h]])

    def _parted(self, w: np.ndarray) -> Shift:
        ends = np.cumsum(self._sizes)
        parts = np.split(w[: -1 - self._k.size], ends[:-1])
        return Shift(dict(zip(self.names, parts, strict=True)), w[ends[-1] : -1], float(w[-1]))


@dataclass(frozen=True)
class Maps:
    """Composed maps from the inputs to the initial state, and the names of their unknowns (empty string if none)."""

    parts: tuple[str, ...]
    maps: list[Map]
    unknowns: list[str]
    project: bool


def _names(model: Any, given: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the initial values that are differentiated."""
    if isinstance(model, System):
        return "q0", "v0"
    if isinstance(model, Hamiltonian):
        return ("q0", "p0") if "p0" in given else ("q0", "v0")
    if isinstance(model, DescriptorModel):
        return ("x0",)
    raise InputError(f"derivatives by the initial values of {model.kind} are not available: use a System")


def _maps(compiled: CompiledStep, names: tuple[str, ...], t0: float) -> Maps:
    model, layout = compiled.model, compiled.layout
    parts = tuple(name.removesuffix("0") for name in names)
    k, h = ca.SX.sym("k", model.parameter_count), ca.SX.sym("h")
    symbols = {name: ca.SX.sym(name, len(model.coordinates)) for name in parts}
    w = ca.vertcat(*symbols.values(), k, h)
    if isinstance(model, System):
        maps, unknowns = _onto_constraints(model, symbols, k, h, t0)
        d = dynamics(model)
        p = ca.Function("p", [d.q, d.v, d.t, d.k], [d.fibre_derivative])(symbols["q"], symbols["v"], t0, k)
        state = {**symbols, "p": ca.densify(p)}
        project = bool(maps)
    elif isinstance(model, Hamiltonian):
        maps, unknowns, project = [], [], False
        q, p = symbols["q"], symbols.get("p", ca.SX.sym("p", model.n))
        v = model.function(model.velocity)(q, p, t0, k)
        state = {"q": q, "v": v, "p": p}
        if "p" not in parts:  # momenta of the given velocities
            maps, unknowns = [Map(w, ca.vertcat(q, p, k, h), p, v - symbols["v"])], ["p"]
            w = ca.vertcat(q, p, k, h)
    else:
        maps, unknowns, project, state = [], [], False, dict(symbols)
        if isinstance(model, FirstOrder) and model.m:
            return _with_algebraic(compiled, model, symbols["x"], k, h, t0)
    state |= _memory(compiled, state, k, h, t0)
    _check_complete(compiled, state)
    whole = [state.get(name, ca.SX.zeros(size)) for name, size in layout.sizes.items()]
    maps.append(Map(w, ca.vertcat(*whole, k, h)))
    return Maps(parts, maps, [*unknowns, ""], project)


def _onto_constraints(
    system: System, symbols: Mapping[str, Any], k: Any, h: Any, t0: float
) -> tuple[list[Map], list[str]]:
    """Return the maps to the nearest consistent position, then to the nearest consistent velocity."""
    d = dynamics(system)
    if not system.m:
        return [], []
    q, v, weights = symbols["q"], symbols["v"], ca.SX.sym("nu", system.m)
    new = ca.SX.sym("new", system.n)
    constraints = ca.Function("g", [d.q, d.v, d.t, d.k], [d.g, d.G, d.velocity_constraint])
    w, x = ca.vertcat(q, v, k, h), ca.vertcat(new, weights)
    g, G, _ = constraints(new, v, t0, k)
    position = Map(w, ca.vertcat(new, v, k, h), x, ca.vertcat(new - q + G.T @ weights, g))
    _, G, rate = constraints(q, new, t0, k)
    velocity = Map(w, ca.vertcat(q, new, k, h), x, ca.vertcat(new - v + G.T @ weights, rate))
    return [position, velocity], ["q", "v"]


def _memory(compiled: CompiledStep, state: Mapping[str, Any], k: Any, h: Any, t0: float) -> dict[str, Any]:
    """Return the extra state of the scheme as expressions."""
    if "q" not in state or "p" not in state:
        return {}
    q, p = ca.SX.sym("q", state["q"].numel()), ca.SX.sym("p", state["p"].numel())
    found = compiled.scheme.memory_expressions(compiled.model, q, p, k, t0, h)
    return {
        name: ca.Function("memory", [q, p, k, h], [ca.densify(part)])(state["q"], state["p"], k, h)
        for name, part in found.items()
    }


def _check_complete(compiled: CompiledStep, state: Mapping[str, Any]) -> None:
    """Raise an error if the steps depend on a part of the state without derivatives."""
    e = compiled.flat
    for name in compiled.layout.sizes:
        if name in state or name in _ACCOUNTS or not compiled.layout.sizes[name]:
            continue
        if ca.depends_on(ca.vertcat(e.residual, e.end), e.z[compiled.layout[name]]):
            raise InputError(
                f"scheme '{compiled.scheme.name}' starts from '{name}', which has no derivatives by the inputs"
            )


def _with_algebraic(compiled: CompiledStep, model: FirstOrder, x: Any, k: Any, h: Any, t0: float) -> Maps:
    """Return the map to the algebraic variables, which are determined by the constraints."""
    d, y = model.descriptor, ca.SX.sym("y", model.m)
    slope = ca.jacobian(model.g, d.x)[:, model.n :]
    if ca.sprank(slope) < model.m:
        raise InputError("derivatives by the initial values are not available: the constraints do not determine y")
    g = ca.Function("g", [d.x, d.t, d.k], [model.g])(ca.vertcat(x, y), t0, k)
    whole = [{"x": x, "y": y}.get(name, ca.SX.zeros(size)) for name, size in compiled.layout.sizes.items()]
    return Maps(("x",), [Map(ca.vertcat(x, k, h), ca.vertcat(*whole, k, h), y, g)], ["y"], False)


def _algebraic(model: PortHamiltonian, initial: InitialState, k: np.ndarray, t0: float) -> Fixed:
    """Return the linearised projection of the algebraic states of a descriptor system."""
    by_x, by_k = algebraic_projection(model, initial["x"], t0, k)
    matrix = np.eye(initial["x"].size + k.size + 1)
    matrix[: by_x.shape[0], : by_x.shape[1]] = by_x
    matrix[: by_k.shape[0], by_x.shape[1] : -1] = by_k
    return Fixed(matrix)
