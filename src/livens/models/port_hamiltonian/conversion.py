"""Mechanical systems in port-Hamiltonian form: any mass matrix, constraints, dissipation, forces as ports."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import ModelError, explain_call_errors
from livens.expressions.name_parsing import split_names
from livens.expressions.parameters import ParameterNamespace, Parameters, ParameterTable
from livens.expressions.probe import Probe
from livens.expressions.tracing import FunctionTracer
from livens.models.element import resolve_indices
from livens.models.equations_of_motion import EquationsOfMotion, equations_of_motion
from livens.models.port_hamiltonian.model import PortHamiltonian
from livens.models.port_hamiltonian.structure import MechanicalConstraints, PHStructure
from livens.models.system import System
from livens.types import ArrayLike, Expr, ModelFunction

#: Power added to the denominator of a damping matrix that depends on v, which has no value at rest.
_TINY_POWER = 1e-290
#: Names of coordinates, or a function of q, t, k that returns a matrix with directions as columns.
Directions = str | Sequence[str] | ModelFunction


@explain_call_errors
def from_system(system: System, inputs: Directions | None = None, outputs: Directions | None = None) -> PortHamiltonian:
    """Return the port-Hamiltonian form of a system: ``x = (q, v, lam)``, constraints at velocity level.

    See Symank 2025, 4.4.

        [I 0 0] [q  ]'   [ 0   I     0  ] [dH/dq]   [0]
        [0 M 0] [v  ]  = [-I  J22-C -G^T] [  v  ] + [B] u,     H = v.dT/dv - T + V,   y = B^T v
        [0 0 0] [lam]    [ 0   G     0  ] [ lam ]   [0]

    M is never inverted and may be singular. If it depends on q, ``J22 = (D mu)^T - D mu`` with ``mu = dT/dv`` contains
    the gyroscopic forces, which do no work; Symank 2025 omits them. The momentum is not a state: the gradient of
    ``p.v - T + V`` in v equals that of E^T z only where ``p = dT/dv``.

    Forces of the system become ports ``F_<coordinate>`` with these forces as input. Rheonomic constraints become ports
    ``drive_<number>`` whose output is the multiplier. In functions, the parameter ``mass`` of an element ``door`` is
    ``k.door_mass``; in a run it may also be called ``door.mass``.

    Parameters
    ----------
    system : System
        Mechanical system.
    inputs : str, sequence of str or callable, optional
        Directions of input forces: names of coordinates, or a function of ``q t k`` that returns a matrix with one
        column per input. The outputs are the velocities in the same directions.
    outputs : str, sequence of str or callable, optional
        Additional directions whose velocity is an output: ports with zero input.

    Returns
    -------
    PortHamiltonian
        The equivalent model.

    Raises
    ------
    ModelError
        If the potential depends on time, or the dissipation function has a force at rest.

    Examples
    --------
    >>> import livens as lv
    >>> cart = lv.System("x", kinetic=lambda v: v @ v, dissipation=lambda v: v @ v, potential=lambda q: q[0] ** 4)
    >>> lv.port_hamiltonian.from_system(cart, inputs="x")
    <livens.PortHamiltonian: states x v_x, port x>
    """
    d, n = equations_of_motion(system), system.n
    if ca.depends_on(d.V, d.t):
        raise ModelError(
            "the potential depends on time, so the energy is not a function of the state; define it by forces instead"
        )
    x = ca.vertcat(d.q, d.v, ca.SX.sym("lam", system.m))
    lam = x[2 * n :]
    mu = d.fibre_derivative
    M, mu_q = ca.jacobian(mu, d.v), ca.jacobian(mu, d.q)
    energy = ca.dot(mu, d.v) - d.T + d.V
    parameters = _parameters(system)
    names, directions, port_inputs = _ports(d, parameters, inputs, outputs)
    g_t = ca.sparsify(ca.jacobian(d.g, d.t))
    rheonomic = [i for i in range(system.m) if g_t[i].nnz()]
    ports = [*names, *(f"drive_{i}" for i in rheonomic)]
    count = len(ports)
    zero, G = ca.SX, d.G
    structure = PHStructure(
        x,
        d.t,
        d.k,
        H=energy,
        z=ca.vertcat(ca.gradient(energy, d.q), d.v, lam),
        E=ca.diagcat(ca.SX.eye(n), M, zero(system.m, system.m)),
        r=zero(x.numel(), 1),
        J=ca.blockcat(
            [
                [zero(n, n), ca.SX.eye(n), zero(n, system.m)],
                [-ca.SX.eye(n), ca.sparsify(mu_q.T - mu_q), -G.T],
                [zero(system.m, n), G, zero(system.m, system.m)],
            ]
        ),
        R=ca.diagcat(zero(n, n), _damping(d), zero(system.m, system.m)),
        B=ca.vertcat(zero(n, count), ca.diagcat(directions, ca.SX.eye(system.m)[:, rheonomic])),
        P=zero(x.numel(), count),
        S=zero(count, count),
        N=zero(count, count),
        inputs=(*port_inputs, *(g_t[i] for i in rheonomic)),
        mechanics=MechanicalConstraints(d.g, d.velocity_constraint, d.v),
    )
    states = [*system.coordinates, *(f"v_{c}" for c in system.coordinates), *(f"lam_{i}" for i in range(system.m))]
    # the parameter vector is that of the system, with the same indices
    element_entries = {
        name: entry
        for name, entry in system.parameter_table.entries.items()
        if name not in system.model_parameters.values
    }
    return PortHamiltonian.from_structure(structure, states, ports, ParameterTable(parameters, aliases=element_entries))


@explain_call_errors
def state_from_system(
    system: System, q0: ArrayLike, v0: ArrayLike, *, t0: float = 0.0, project: bool = False
) -> np.ndarray:
    """Return the state ``(q, v, lam)`` of `from_system`, consistent at both levels.

    Parameters
    ----------
    system : System
        Mechanical system.
    q0, v0 : array_like of shape (n,)
        Initial coordinates and velocities.
    t0 : float, default 0.0
        Initial time, in seconds.
    project : bool, default False
        Replace inconsistent values by the nearest consistent ones instead of raising an error.

    Returns
    -------
    ndarray of shape (2 n + n_constraints,)
        State with the multipliers of the initial accelerations.

    Raises
    ------
    InputError
        If the values are inconsistent and `project` is False.
    """
    from livens.models.initialization.dense import initial_state  # SciPy takes long to import

    state = initial_state(system, q0, v0, system.parameter_vector(), t0=t0, project=project)
    return np.concatenate([state["q"], state["v"], state["multipliers"]])


def _damping(d: EquationsOfMotion) -> Expr:
    """Return a damping matrix C with ``C v = dR/dv``, constant in v for a Rayleigh function ``v.C v / 2``.

    Otherwise ``C = f f^T/(f . v)`` with ``f = dR/dv``: symmetric, and positive semidefinite where the forces dissipate.
    It depends on q and v (Symank 2025, 4.4.1).
    """
    C, force = ca.hessian(d.R, d.v)
    at_rest = ca.Function("force", [d.q, d.v, d.t, d.k], [force])(d.q, ca.SX.zeros(d.v.numel()), d.t, d.k)
    if Probe([d.q, d.t, d.k], seed=16).is_zero(at_rest) is False:
        raise ModelError(
            "the dissipation function has a force at rest, which is not -C v; define this part by forces instead"
        )
    if not ca.depends_on(C, d.v):
        return ca.sparsify(C)
    dense = ca.densify(force)
    return dense @ dense.T / (ca.dot(dense, d.v) + _TINY_POWER)


def _parameters(system: System) -> Parameters:
    """Return the parameters in the order of the system's parameter vector, with identifiers as names."""
    named: dict[str, Any] = dict(system.model_parameters.values)
    for i, element in enumerate(system.elements):
        prefix = re.sub(r"\W", "_", element.name) if element.name else "element"
        for name, value in element.parameters.values.items():
            free = f"{prefix}_{name}"
            named[free if free.isidentifier() and free not in named else f"element{i}_{name}"] = value
    return Parameters(named)


def _ports(
    d: EquationsOfMotion, parameters: Parameters, inputs: Directions | None, outputs: Directions | None
) -> tuple[list[str], Any, list[Any]]:
    """Return names, directions and inputs of the ports: open ports, output-only ports, applied forces."""
    coordinates, n = d.system.coordinates, d.system.n
    force = ca.sparsify(d.F)
    forced_dofs = [i for i in range(n) if force[i].nnz()]
    in_names, in_columns = _directions("inputs", "f", d, parameters, inputs)
    out_names, out_columns = _directions("outputs", "y", d, parameters, outputs)
    clash = {name: f"{name}_out" for name in out_names if name in in_names}
    names = [*in_names, *(clash.get(name, name) for name in out_names), *(f"F_{coordinates[i]}" for i in forced_dofs)]
    port_inputs = [None] * len(in_names) + [ca.SX(0)] * len(out_names) + [force[i] for i in forced_dofs]
    return names, ca.horzcat(in_columns, out_columns, ca.SX.eye(n)[:, forced_dofs]), port_inputs


def _directions(
    role: str, prefix: str, d: EquationsOfMotion, parameters: Parameters, directions: Directions | None
) -> tuple[list[str], Any]:
    n = d.system.n
    if directions is None:
        return [], ca.SX(n, 0)
    if callable(directions):
        trace = FunctionTracer({"q": d.q, "t": d.t, "k": ParameterNamespace(parameters.unpack_symbols(d.k))})
        matrix = trace(role, directions, (n, None), "qtk")
        return [f"{prefix}{i}" for i in range(matrix.shape[1])], matrix
    index = resolve_indices(split_names(directions), d.system.coordinates, f"'{role}' of from_system")
    return [d.system.coordinates[i] for i in index], ca.SX.eye(n)[:, list(index)]
