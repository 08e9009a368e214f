"""Autonomous form of port-Hamiltonian systems, with time as a state."""

from __future__ import annotations

from typing import Any

import casadi as ca

from livens.models.port_hamiltonian.model import PortHamiltonian
from livens.models.port_hamiltonian.structure import Structure


def autonomous(model: PortHamiltonian) -> PortHamiltonian:
    """Return the autonomous form of a system: time is the last state, with ``t' = 1`` (S002 4.2.3).

    The time flow r becomes a column of the flow matrix, and a port with the constant input 1 drives the clock. Its
    effort is zero, so it supplies no power. (S002 has a 1 in the last entry of P as well: the clock would then stand
    still, and W would be indefinite. The 1 belongs to B only.)

    Parameters
    ----------
    model : PortHamiltonian
        Model whose functions may depend on time.

    Returns
    -------
    PortHamiltonian
        Model with one more state ("time") and one more port ("clock").

    Examples
    --------
    >>> import livens as lv
    >>> driven = lv.PortHamiltonian("q p", H=lambda x: (x @ x) / 2, J=[[0, 1], [-1, 0]], B=[[0], [1]], u=lambda t: [t])
    >>> lv.port_hamiltonian.autonomous(driven)
    <livens.PortHamiltonian: states q p time, ports u0 clock>
    """
    s, n = model.structure, model.n
    x, t = ca.SX.sym("x", n + 1), ca.SX.sym("t")
    parts = ca.Function("parts", [s.x, s.t, s.k], s.matrices())
    H, z, E, r, J, R, B, P, S, N = parts(x[:n], x[n], s.k)
    laws = [None if law is None else ca.substitute(law, ca.vertcat(s.x, s.t), x) for law in s.laws]
    one, none = ca.SX.ones(1, 1), ca.SX(1, 1)

    def extended(matrix: Any, corner: Any) -> Any:
        return ca.diagcat(matrix, corner)

    structure = Structure(
        x,
        t,
        s.k,
        H=H,
        z=ca.vertcat(z, none),
        E=ca.blockcat([[E, r], [ca.SX(1, n), one]]),
        r=ca.SX(n + 1, 1),
        J=extended(J, none),
        R=extended(R, none),
        B=extended(B, one),
        P=extended(P, none),
        S=extended(S, none),
        N=extended(N, none),
        laws=(*laws, ca.SX(1)),
        mechanics=None if s.mechanics is None else s.mechanics.at(ca.vertcat(s.x, s.t), x),
    )
    states, ports = (*model.states, _new("time", model.states)), (*model.ports, _new("clock", model.ports))
    return PortHamiltonian.of(structure, states, ports, model.parameter_table)


def _new(name: str, taken: tuple[str, ...]) -> str:
    return name if name not in taken else _new(name + "_", taken)
