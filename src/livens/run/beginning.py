"""How the first state of a run follows from what it is given, and derivatives of that."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from livens.engine.compiled import CompiledStep
from livens.errors import InputError
from livens.models.model import InitialState
from livens.models.summed import dynamics
from livens.models.system import System


class StartMap:
    """The way from initial values and parameters to the first state, at one start.

    Initial values that are not consistent would be moved to the nearest ones that are: q0 along the gradients of the
    constraints, then v0. The way is differentiated with that, so that a step off the constraints counts as its
    projection on them.
    """

    def __init__(
        self, compiled: CompiledStep, initial: InitialState, k: np.ndarray, h: float, given: tuple[str, ...]
    ) -> None:
        self._layout, self._model, self._initial, self._k = compiled.layout, compiled.model, initial, k
        self._given, self._scheme, self._h = given, compiled.scheme, h
        self._memory = tuple(compiled.scheme.memory(compiled.model, initial.values, k, initial.t, h))
        if set(self._memory) - set(self._expressions()[1]):
            name = compiled.scheme.name
            raise InputError(f"scheme '{name}' starts from more than the state, by which it cannot be differentiated")

    def _expressions(self) -> tuple[list[Any], dict[str, Any]]:
        """What the scheme adds to the state, as expressions of symbols q, p and k."""
        if not self._memory:
            return [], {}
        sizes = self._layout.sizes["q"], self._layout.sizes["p"], self._k.size
        q, p, k = (ca.SX.sym(name, size) for name, size in zip("qpk", sizes, strict=True))
        return [q, p, k], self._scheme.memory_expressions(self._model, q, p, k, self._initial.t, self._h)

    def back(self, a: np.ndarray, by_k: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Derivatives by what was given and by the parameters, from those by the first state and the parameters."""
        parts = {name: a[self._layout[name]] for name in self._layout.sizes}
        known = {"q", "v", "p", "x", "supplied_energy", "dissipated_energy", *self._memory}
        for name in set(parts) - known:
            if np.any(parts[name]):
                raise InputError(f"scheme '{self._scheme.name}' starts from {name}, whose derivatives are not known")
        symbols, memory = self._expressions()
        for name in self._memory:
            slopes = ca.Function("memory", symbols, [ca.jacobian(memory[name], symbol) for symbol in symbols])
            m_q, m_p, m_k = (np.array(ca.densify(m)) for m in slopes(self._initial["q"], self._initial["p"], self._k))
            parts["q"] = parts["q"] + m_q.T @ parts[name]
            parts["p"] = parts["p"] + m_p.T @ parts[name]
            by_k = by_k + m_k.T @ parts[name]
        if isinstance(self._model, System):
            return self._of_system(parts, by_k)
        if "x" in parts and "y" not in parts:
            return {"x0": parts["x"].copy()}, by_k
        if "p" in parts and "p0" in self._given:
            return self._of_momenta(self._model, parts, by_k)
        raise InputError(f"derivatives by the start of a {self._model.kind} are not known for these initial values")

    def _of_system(self, parts: dict[str, np.ndarray], by_k: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        d, (q, v) = dynamics(self._model), (self._initial["q"], self._initial["v"])
        inputs, at = [d.q, d.v, d.t, d.k], (q, v, self._initial.t, self._k)
        momenta = ca.Function("p", inputs, [ca.jacobian(d.fibre_derivative, by) for by in (d.q, d.v, d.k)])
        p_q, p_v, p_k = (np.array(ca.densify(m)) for m in momenta(*at))
        by_q, by_v = parts["q"] + p_q.T @ parts["p"], parts["v"] + p_v.T @ parts["p"]
        by_k = by_k + p_k.T @ parts["p"]
        if self._model.constraint_names:
            hidden = d.velocity_constraint
            outputs = [d.G, ca.jacobian(hidden, d.q), ca.jacobian(d.g, d.k), ca.jacobian(hidden, d.k)]
            G, H, g_k, hidden_k = (np.array(ca.densify(m)) for m in ca.Function("g", inputs, outputs)(*at))
            inverse = np.linalg.pinv(G, rcond=1e-10)
            reaction = inverse.T @ by_v
            by_q, by_v = by_q - H.T @ reaction, by_v - G.T @ reaction
            by_k = by_k - hidden_k.T @ reaction - g_k.T @ (inverse.T @ by_q)
            by_q = by_q - G.T @ (inverse.T @ by_q)
        return {"q0": by_q, "v0": by_v}, by_k

    def _of_momenta(
        self, model: Any, parts: dict[str, np.ndarray], by_k: np.ndarray
    ) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """The velocities of a Hamiltonian system follow from its momenta."""
        by_q, by_p = parts["q"].copy(), parts["p"].copy()
        if "v" in parts and np.any(parts["v"]):
            inputs = [model.q, model.p, model.t, model.k]
            outputs = [ca.jacobian(model.velocity, symbol) for symbol in (model.q, model.p, model.k)]
            at = self._initial["q"], self._initial["p"], self._initial.t, self._k
            v_q, v_p, v_k = (np.array(ca.densify(m)) for m in ca.Function("v", inputs, outputs)(*at))
            by_q, by_p, by_k = by_q + v_q.T @ parts["v"], by_p + v_p.T @ parts["v"], by_k + v_k.T @ parts["v"]
        return {"q0": by_q, "p0": by_p}, by_k
