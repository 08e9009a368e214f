"""Base class of models in phase space (q, p)."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from livens.errors import InputError, suggestion
from livens.expressions.layout import Layout
from livens.expressions.numbers import vector
from livens.expressions.probe import Probe
from livens.models.model import InitialState, Model, Promising, View, only, size_of_terms
from livens.models.symmetry import has_linear_generators

if TYPE_CHECKING:
    from livens.models.hamiltonian.model import Hamiltonian


class PhaseSpaceModel(Model):
    """Phase-space model with state (q, p), velocities ``v = dH/dp`` and the supplied and dissipated energies."""

    kind = "Hamiltonian"
    forms = ("phase space",)
    usual_scheme = "implicit-midpoint"

    @property
    def layout(self) -> Layout:
        n = len(self.coordinates)
        return Layout(q=n, v=n, p=n, supplied_energy=1, dissipated_energy=1)

    @functools.cached_property
    def view(self) -> View:
        return PhaseView(self)  # type: ignore[arg-type]  # Hamiltonian is the only subclass

    def watched_energy(self, conserved: tuple[str, ...]) -> str:
        return "hamiltonian"

    def magnitude(self) -> Any:
        view = self.view
        if "kinetic_energy" in view.names:
            return ca.fabs(view.expression("kinetic_energy"))
        return size_of_terms(view.expression("hamiltonian"), view.state)

    def start(self, given: Mapping[str, Any], k: np.ndarray, t0: float, project: bool, redundant: str) -> InitialState:
        """Return the initial state for q0 and p0, or for q0 and v0 if velocities determine the momenta."""
        only(given, ("q0", "p0", "v0"), "Hamiltonian system")
        model: Hamiltonian = self  # type: ignore[assignment]
        n, names = len(self.coordinates), self.coordinates
        state = model.function(ca.vertcat(model.velocity, model.momentum_rate, model.H))
        q = vector("q0", given.get("q0"), names, "coordinate")
        if given.get("p0") is not None and given.get("v0") is not None:
            raise InputError("give either momenta p0 or velocities v0, not both")
        if given.get("v0") is not None:
            p = model.momenta_of(q, vector("v0", given["v0"], names, "coordinate"), t0, k)
        else:
            p = vector("p0", given.get("p0"), names, "coordinate")
        values = np.array(state(q, p, t0, k)).ravel()
        if not np.all(np.isfinite(values)):
            raise InputError("the energy or its derivatives cannot be evaluated at q0, p0: the result is not finite")
        return InitialState(t0, {"q": q, "v": values[:n], "p": p})

    def conserves(self, name: str, k: np.ndarray) -> bool:
        """Return whether the Poisson bracket of the momentum map with H vanishes at random states."""
        model: Hamiltonian = self  # type: ignore[assignment]
        momentum = self.view.expression(name)
        rates = [ca.jtimes(momentum, model.q, model.velocity), ca.jtimes(momentum, model.p, model.momentum_rate)]
        probe = Probe([model.q, model.p, model.t, model.k], seed=6, given={3: k})
        return probe.vanishes(rates[0] + rates[1], 1 + ca.fabs(rates[0]) + ca.fabs(rates[1]), 1e-10) is True

    error_variables = ("q", "p")

    def velocity_derivatives(self, state: InitialState, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the derivatives of ``v = dH/dp`` with respect to q and p.

        Parameters
        ----------
        state : InitialState
            State with q, p and t.
        k : ndarray of shape (parameter_count,)
            Parameter vector.

        Returns
        -------
        dv_dq, dv_dp : ndarray of shape (n, n)
            Partial derivatives of the velocities.
        """
        model: Hamiltonian = self  # type: ignore[assignment]
        by_both = model.function(ca.jacobian(model.velocity, ca.vertcat(model.q, model.p)))
        by_q, by_p = np.split(np.array(by_both(state["q"], state["p"], state.t, k)), 2, axis=1)
        return by_q, by_p

    def promised(self, scheme: Promising | None, name: str, k: np.ndarray | None = None) -> bool:
        """Return whether an observable is conserved, by name or as a momentum map with generators linear in q."""
        if scheme is None or name in scheme.conserves or "momentum_maps" not in scheme.conserves:
            return super().promised(scheme, name, k)
        return name in self.symmetries and has_linear_generators(self.symmetries[name])


class PhaseView(View):
    """Symbols, energies and momentum maps of a Hamiltonian."""

    def __init__(self, model: Hamiltonian) -> None:
        self._model = model
        self.symbols = {"q": model.q, "v": model.v, "p": model.p}
        self.t, self.k = model.t, model.k
        self._expressions = {"hamiltonian": model.H, "total_energy": model.H}
        if model.T is not None:
            self._expressions |= {"kinetic_energy": model.T, "potential_energy": model.V}

    def expression(self, name: str) -> Any:
        if name in self._expressions:
            return self._expressions[name]
        if name in self._model.symmetries:
            return self._model.symmetries[name](self._model.q).T @ self._model.p
        raise InputError(f"unknown observable '{name}'{suggestion(str(name), self.names)}")

    @property
    def names(self) -> tuple[str, ...]:
        return (*self._expressions, *self._model.symmetries)
