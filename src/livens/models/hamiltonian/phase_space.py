"""Base class of models in phase space (q, p)."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from livens.errors import InputError, suggestion
from livens.expressions.probe import Probe
from livens.expressions.state_layout import Layout
from livens.models.base import (
    ConservationGuarantees,
    InitialState,
    Model,
    SymbolicState,
    check_initial_value_names,
    energy_term_scale,
)
from livens.models.symmetry import keeps_momentum
from livens.types import Expr
from livens.validation import check_vector

if TYPE_CHECKING:
    from livens.models.hamiltonian.model import Hamiltonian


class PhaseSpaceModel(Model):
    """Phase-space model with state (q, p), velocities ``v = dH/dp`` and the supplied and dissipated energies."""

    type_label = "Hamiltonian"
    formulations = ("phase space",)
    default_scheme = "implicit-midpoint"

    @property
    def layout(self) -> Layout:
        n = len(self.coordinates)
        return Layout(q=n, v=n, p=n, supplied_energy=1, dissipated_energy=1)

    @functools.cached_property
    def view(self) -> SymbolicState:
        return HamiltonianSymbols(self)  # type: ignore[arg-type]  # Hamiltonian is the only subclass

    def monitored_energy(self, conserved: tuple[str, ...]) -> str:
        return "hamiltonian"

    def energy_scale(self) -> Expr:
        view = self.view
        if "kinetic_energy" in view.observable_names:
            return ca.fabs(view.observable("kinetic_energy"))
        return energy_term_scale(view.observable("hamiltonian"), view.state)

    def initial_state(
        self, initial_values: Mapping[str, object], k: np.ndarray, t0: float, project: bool, redundant: str
    ) -> InitialState:
        """Return the initial state for q0 and p0, or for q0 and v0 if velocities determine the momenta."""
        check_initial_value_names(initial_values, ("q0", "p0", "v0"), "Hamiltonian system")
        model: Hamiltonian = self  # type: ignore[assignment]
        n, names = len(self.coordinates), self.coordinates
        state = model.function(ca.vertcat(model.velocity, model.momentum_rate, model.H))
        q = check_vector("q0", initial_values.get("q0"), names, "coordinate")
        if initial_values.get("p0") is not None and initial_values.get("v0") is not None:
            raise InputError("give either momenta p0 or velocities v0, not both")
        if initial_values.get("v0") is not None:
            p = model._momenta(q, check_vector("v0", initial_values["v0"], names, "coordinate"), t0, k)
        else:
            p = check_vector("p0", initial_values.get("p0"), names, "coordinate")
        values = np.array(state(q, p, t0, k)).ravel()
        if not np.all(np.isfinite(values)):
            raise InputError("the energy or its derivatives cannot be evaluated at q0, p0: the result is not finite")
        return InitialState(t0, {"q": q, "v": values[:n], "p": p})

    def is_invariant(self, name: str, k: np.ndarray) -> bool:
        """Return whether the Poisson bracket of the momentum map with H vanishes at random states."""
        model: Hamiltonian = self  # type: ignore[assignment]
        momentum = self.view.observable(name)
        rates = [ca.jtimes(momentum, model.q, model.velocity), ca.jtimes(momentum, model.p, model.momentum_rate)]
        probe = Probe([model.q, model.p, model.t, model.k], seed=6, fixed={3: k})
        return probe.is_zero(rates[0] + rates[1], 1 + ca.fabs(rates[0]) + ca.fabs(rates[1]), 1e-10) is True

    error_norm_variables = ("q", "p")

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
        tuple of ndarray
            Partial derivatives dv/dq and dv/dp, each of shape (n, n).
        """
        model: Hamiltonian = self  # type: ignore[assignment]
        derivatives = model.function(ca.jacobian(model.velocity, ca.vertcat(model.q, model.p)))
        dv_dq, dv_dp = np.split(np.array(derivatives(state["q"], state["p"], state.t, k)), 2, axis=1)
        return dv_dq, dv_dp

    def is_guaranteed_by(self, scheme: ConservationGuarantees | None, name: str, k: np.ndarray | None = None) -> bool:
        """Return whether an observable is conserved, by name or as a momentum map with generators linear in q."""
        if scheme is None or name in scheme.conserves or "momentum_maps" not in scheme.conserves:
            return super().is_guaranteed_by(scheme, name, k)
        return name in self.symmetries and keeps_momentum(scheme, self, name)


class HamiltonianSymbols(SymbolicState):
    """Symbols, energies and momentum maps of a Hamiltonian."""

    def __init__(self, model: Hamiltonian) -> None:
        self._model = model
        self.symbols = {"q": model.q, "v": model.v, "p": model.p}
        self.t, self.k = model.t, model.k
        self._expressions = {"hamiltonian": model.H, "total_energy": model.H}
        if model.T is not None:
            self._expressions |= {"kinetic_energy": model.T, "potential_energy": model.V}

    def observable(self, name: str) -> Expr:
        if name in self._expressions:
            return self._expressions[name]
        if name in self._model.symmetries:
            return self._model.symmetries[name](self._model.q).T @ self._model.p
        raise InputError(f"unknown observable '{name}'{suggestion(str(name), self.observable_names)}")

    @property
    def observable_names(self) -> tuple[str, ...]:
        return (*self._expressions, *self._model.symmetries)
