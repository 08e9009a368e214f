"""Dirac structure of a port-Hamiltonian system: flows, efforts, membership and power (Symank 2025, 4.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import InputError, explain_call_errors
from livens.models.port_hamiltonian.model import PortHamiltonian
from livens.validation import check_array, check_vector

#: Default tolerance of membership, relative to the magnitude of the terms.
_TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class FlowsAndEfforts:
    """Flows ``f_s, f_p, f_d`` and efforts ``e_s, e_p, e_d`` of storage, ports and dissipation.

    Each is an array whose last dimension is that of the space: n for the storage, n_ports for the ports, n + n_ports
    for the dissipation.

    Parameters
    ----------
    f_s, f_p, f_d : ndarray
        Flows ``-(E x' + r)``, ``y`` and ``(z, u)``.
    e_s, e_p, e_d : ndarray
        Efforts ``z``, ``u`` and ``-W f_d``.
    """

    f_s: np.ndarray
    f_p: np.ndarray
    f_d: np.ndarray
    e_s: np.ndarray
    e_p: np.ndarray
    e_d: np.ndarray

    @property
    def f(self) -> np.ndarray:
        """All flows, in the order storage, ports, dissipation."""
        return np.concatenate([self.f_s, self.f_p, self.f_d], axis=-1)

    @property
    def e(self) -> np.ndarray:
        """All efforts, in the order storage, ports, dissipation."""
        return np.concatenate([self.e_s, self.e_p, self.e_d], axis=-1)

    @property
    def power(self) -> np.ndarray:
        """Total power ``<e, f>`` in watts: zero for every element of the Dirac structure."""
        return np.asarray(np.sum(self.e * self.f, axis=-1))

    @property
    def stored_power(self) -> np.ndarray:
        """Rate of the stored energy, ``-e_s^T f_s``, in watts."""
        return np.asarray(-np.sum(self.e_s * self.f_s, axis=-1))

    @property
    def supplied_power(self) -> np.ndarray:
        """Power supplied by the ports, ``e_p^T f_p``, in watts."""
        return np.asarray(np.sum(self.e_p * self.f_p, axis=-1))

    @property
    def dissipated_power(self) -> np.ndarray:
        """Dissipated power ``-e_d^T f_d``, in watts."""
        return np.asarray(-np.sum(self.e_d * self.f_d, axis=-1))


@explain_call_errors
class DiracStructure:
    """Dirac structure ``f + [[Gamma, I], [-I, 0]] e = 0`` of a port-Hamiltonian system (Symank 2025, eq. 4.7).

    A subspace of flows and efforts that equals its own orthogonal complement: no element has power, and every pair of
    flows and efforts that exchanges no power with all elements belongs to it. The system consists of this structure,
    the storage ``f_s = -(E x' + r)``, ``e_s = z`` and the dissipation ``e_d = -W f_d``.

    Parameters
    ----------
    model : PortHamiltonian
        Model whose structure is described.

    Examples
    --------
    >>> import numpy as np, livens as lv
    >>> swing = lv.PortHamiltonian("q p", H=lambda x: x @ x / 2, J=[[0, 1], [-1, 0]], B=[[0], [1]])
    >>> structure = lv.port_hamiltonian.DiracStructure(swing)
    >>> element = structure.flows_and_efforts([1.0, 2.0], [2.0, -1.0])
    >>> structure.contains(element.f, element.e), float(element.power)
    (True, 0.0)
    """

    def __init__(self, model: PortHamiltonian) -> None:
        if not isinstance(model, PortHamiltonian):
            raise InputError(f"model must be a port-Hamiltonian system, got {type(model).__name__}")
        self.model = model
        s, d = model.structure, model.descriptor
        arguments = [s.x, s.t, s.k]
        effort = ca.vertcat(s.z, d.u if model.m else ca.SX(0, 1))
        output = d.y if model.m else ca.SX(0, 1)
        self._gamma = ca.Function("Gamma", arguments, [ca.densify(s.Gamma)])
        self._parts = ca.Function(
            "parts",
            [s.x, d.xdot, s.t, s.k],
            [ca.densify(part) for part in (-(s.E @ d.xdot + s.r), output, effort, s.W @ effort)],
        )

    def matrix(self, x: object, t: float = 0.0, k: np.ndarray | None = None) -> np.ndarray:
        """Return the skew-symmetric matrix ``[[Gamma, I], [-I, 0]]`` at a state.

        Parameters
        ----------
        x : array_like of shape (n,)
            State.
        t : float, default 0.0
            Time, in seconds.
        k : ndarray of shape (parameter_count,), optional
            Parameter vector. Default: the parameters of the model.

        Returns
        -------
        ndarray of shape (2 (n + n_ports), 2 (n + n_ports))
            Matrix of the structure.
        """
        state = check_vector("x", x, self.model.states)
        gamma = np.array(self._gamma(state, t, self.model.parameter_vector() if k is None else k))
        unit = np.eye(len(gamma))
        return np.block([[gamma, unit], [-unit, np.zeros_like(gamma)]])

    def flows_and_efforts(
        self, x: object, xdot: object, t: float = 0.0, k: np.ndarray | None = None
    ) -> FlowsAndEfforts:
        """Return flows and efforts of the system at a state with a rate of change.

        They belong to the structure if, and only if, the rate satisfies the equations of the system.

        Parameters
        ----------
        x, xdot : array_like of shape (n,)
            State and its time derivative.
        t : float, default 0.0
            Time, in seconds.
        k : ndarray of shape (parameter_count,), optional
            Parameter vector. Default: the parameters of the model.

        Returns
        -------
        FlowsAndEfforts
            The six parts.
        """
        n, values = self.model.n, self.model.parameter_vector() if k is None else k
        state, rate = check_vector("x", x, self.model.states), check_vector("xdot", xdot, self.model.states)
        f_s, y, effort, loss = (np.array(part).ravel() for part in self._parts(state, rate, t, values))
        return FlowsAndEfforts(f_s, y, effort, effort[:n], effort[n:], -loss)

    def contains(
        self,
        f: object,
        e: object,
        x: object = None,
        t: float = 0.0,
        *,
        k: np.ndarray | None = None,
        tolerance: float = _TOLERANCE,
    ) -> bool:
        """Return whether flows and efforts belong to the structure at a state.

        Parameters
        ----------
        f, e : array_like of shape (2 (n + n_ports),)
            Flows and efforts in the order storage, ports, dissipation.
        x : array_like of shape (n,), optional
            State. Default: zero, for a constant Gamma.
        t : float, default 0.0
            Time, in seconds.
        k : ndarray of shape (parameter_count,), optional
            Parameter vector. Default: the parameters of the model.
        tolerance : float, default 1e-12
            Tolerance relative to the magnitude of the terms.

        Returns
        -------
        bool
            Membership.

        Raises
        ------
        InputError
            If f or e has another length.
        """
        matrix = self.matrix(np.zeros(self.model.n) if x is None else x, t, k)
        flows, efforts = check_array("f", f), check_array("e", e)
        if flows.shape != (len(matrix),) or efforts.shape != (len(matrix),):
            raise InputError(f"f and e must have the length {len(matrix)}, got {flows.shape} and {efforts.shape}")
        scale = np.abs(flows) + np.abs(matrix) @ np.abs(efforts)
        return bool(np.all(np.abs(flows + matrix @ efforts) <= tolerance * max(scale.max(initial=0.0), 1e-300)))

    def at_stages(self, run: Any) -> FlowsAndEfforts:
        """Return the discrete flows and efforts at the stages of all steps of a Runge-Kutta run (Symank 2025, 5.3.1).

        Parameters
        ----------
        run : Result
            Run of the model with a Runge-Kutta scheme and all steps stored.

        Returns
        -------
        FlowsAndEfforts
            Arrays of shape (n_steps, n_stages, ...).

        Raises
        ------
        InputError
            If the scheme of the run has no stages.
        """
        values = run.step_values()
        stages = sorted(int(name[1:]) for name in values if name.startswith("X") and name[1:].isdigit())
        if not stages or any(f"slope{i}" not in values for i in stages):
            raise InputError(f"scheme '{run.info.scheme}' has no stages with states and derivatives")
        k = self.model.parameter_vector(run.info.parameters)
        parts = [
            [
                self.flows_and_efforts(values[f"X{i}"][j], values[f"slope{i}"][j], float(values[f"time{i}"][j, 0]), k)
                for i in stages
            ]
            for j in range(len(values["X1"]))
        ]
        names = ("f_s", "f_p", "f_d", "e_s", "e_p", "e_d")
        return FlowsAndEfforts(*(np.array([[getattr(p, name) for p in row] for row in parts]) for name in names))
