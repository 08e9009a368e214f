"""Autonomous form of port-Hamiltonian systems, with time as a state."""

from __future__ import annotations

import casadi as ca

from livens.errors import explain_call_errors
from livens.models.port_hamiltonian.model import PortHamiltonian
from livens.models.port_hamiltonian.structure import PHStructure
from livens.types import Expr


@explain_call_errors
def autonomous(model: PortHamiltonian) -> PortHamiltonian:
    """Return the autonomous form of a system: time is the last state, with ``t' = 1`` (Symank 2025, 4.2.3).

    The time flow r becomes a column of the flow matrix, and a port with the constant input 1 drives the clock. Its
    effort is zero, so it supplies no power. (Symank 2025 has a 1 in the last entry of P as well: the clock would then
    stand still, and W would be indefinite. The 1 belongs to B only.)

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
    inputs = [None if law is None else ca.substitute(law, ca.vertcat(s.x, s.t), x) for law in s.inputs]
    unit, zero = ca.SX.ones(1, 1), ca.SX(1, 1)

    def extended(matrix: Expr, corner: Expr) -> Expr:
        return ca.diagcat(matrix, corner)

    structure = PHStructure(
        x,
        t,
        s.k,
        H=H,
        z=ca.vertcat(z, zero),
        E=ca.blockcat([[E, r], [ca.SX(1, n), unit]]),
        r=ca.SX(n + 1, 1),
        J=extended(J, zero),
        R=extended(R, zero),
        B=extended(B, unit),
        P=extended(P, zero),
        S=extended(S, zero),
        N=extended(N, zero),
        inputs=(*inputs, ca.SX(1)),
        mechanics=None if s.mechanics is None else s.mechanics.substitute(ca.vertcat(s.x, s.t), x),
    )
    states, ports = (
        (*model.states, _fresh_name("time", model.states)),
        (*model.ports, _fresh_name("clock", model.ports)),
    )
    return PortHamiltonian.from_structure(structure, states, ports, model.parameter_table)


def _fresh_name(name: str, taken: tuple[str, ...]) -> str:
    return name if name not in taken else _fresh_name(name + "_", taken)
