"""Port-Hamiltonian descriptor systems (pH-DAEs) as models, with checks of their structure."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import InputError, ModelError, explain_call_errors
from livens.expressions.name_parsing import Names, parse_names
from livens.expressions.parameters import ParameterNamespace, Parameters, ParameterTable
from livens.expressions.state_layout import Layout
from livens.expressions.tracing import FunctionTracer
from livens.models.base import ConservationGuarantees, InitialState, check_initial_value_names
from livens.models.descriptor import Descriptor, DescriptorModel
from livens.models.port_hamiltonian.initialization import check_initial_state
from livens.models.port_hamiltonian.structure import PHStructure, check_at, check_structure
from livens.types import Expr, FloatArray, ModelFunction
from livens.validation import check_vector

#: Numbers, or a function of some of x, t, k that returns numbers.
MatrixLike = ModelFunction | Sequence[Any] | np.ndarray


@explain_call_errors
class PortHamiltonian(DescriptorModel):
    """Port-Hamiltonian descriptor system (pH-DAE, Symank 2025, def. 4.1).

    The equations are ``E x' + r = (J - R) z + (B - P) u`` with the output ``y = (B + P)^T z + (S - N) u``. Matrices and
    vectors are numbers, or functions of any of ``x t k`` (states, time, parameters) by argument name.

    The structure is checked at construction, at random states and at `points`: ``[[J, B], [-B^T, N]]`` is
    skew-symmetric, ``[[R, P], [P^T, S]]`` is symmetric positive semidefinite, ``dH/dx = E^T z`` and ``dH/dt = z.r``.

    Parameters
    ----------
    states : str, sequence of str or int
        Names of the states ("x1 x2"), or their number n. Zero for a memoryless component of a network, such as a
        resistor or a transformer: `ports`, and S or N.
    H : callable, optional
        Hamiltonian, the stored energy, in joules. Required unless there are no states.
    z : array_like or callable, optional
        Effort of shape (n,). Default: the gradient of H, for E = identity.
    E : array_like or callable, optional
        Flow matrix of shape (n, n). Default: identity.
    r : array_like or callable, optional
        Time flow of shape (n,). Default: zero.
    J, R : array_like or callable, optional
        Structure and dissipation matrices of shape (n, n). Default: zero.
    B, P : array_like or callable, optional
        Port matrices of shape (n, n_ports). Default: zero.
    S, N : array_like or callable, optional
        Feedthrough matrices of shape (n_ports, n_ports). Default: zero.
    u : array_like or callable, optional
        Input: a function of any of ``x y t k``, such as a function of time or feedback. Ports without input are open:
        u is zero there until `with_input` or `interconnect` defines it.
    parameters : mapping, optional
        Parameter values by name, available to functions as ``k``.
    ports : str, sequence of str or int, optional
        Names of the ports, or their number. Default: one per column of B.
    points : sequence of (float, sequence of float), default ()
        Pairs of a time and a state at which the structure is checked, in addition to random states.

    Raises
    ------
    InputError
        If there is no state.
    ModelError
        If the structure is violated, an input is an algebraic loop, or an argument is missing.

    Examples
    --------
    >>> import livens as lv
    >>> from livens import math as m
    >>> oscillator = lv.PortHamiltonian(
    ...     "q p",
    ...     H=lambda x, k: x[1] ** 2 / (2 * k.m) + k.c * x[0] ** 2 / 2,
    ...     J=[[0, 1], [-1, 0]],
    ...     R=lambda k: [[0, 0], [0, k.d]],
    ...     B=[[0], [1]],
    ...     u=lambda t: [m.sin(t)],
    ...     parameters=dict(m=1.0, c=4.0, d=0.1),
    ... )
    >>> oscillator
    <livens.PortHamiltonian: states q p, port u0>
    >>> oscillator.dissipated([0.0, 2.0], 0.0, oscillator.parameter_vector())  # d v^2
    DM(0.4)
    """

    type_label = "PortHamiltonian"
    formulations: tuple[str, ...] = ("port-hamiltonian", "descriptor")

    def __init__(
        self,
        states: Names,
        *,
        H: ModelFunction | None = None,
        z: MatrixLike | None = None,
        E: MatrixLike | None = None,
        r: MatrixLike | None = None,
        J: MatrixLike | None = None,
        R: MatrixLike | None = None,
        B: MatrixLike | None = None,
        P: MatrixLike | None = None,
        S: MatrixLike | None = None,
        N: MatrixLike | None = None,
        u: MatrixLike | None = None,
        parameters: Mapping[str, object] | None = None,
        ports: Names | None = None,
        points: Sequence[tuple[float, Sequence[float]]] = (),
    ) -> None:
        names, values = parse_names("states", states, "x"), Parameters(parameters)
        n = len(names)
        if n == 0 and ports is None:
            raise InputError("a port-Hamiltonian system needs at least one state, or ports: a memoryless component")
        x, t, k = ca.SX.sym("x", n), ca.SX.sym("t"), ca.SX.sym("k", values.size)
        trace = FunctionTracer({"x": x, "t": t, "k": ParameterNamespace(values.unpack_symbols(k))})
        energy = ca.SX(0) if H is None else trace("H", H, ())
        if H is None and n:
            raise ModelError("give the Hamiltonian H: only a component without states stores no energy")
        if E is not None and z is None:
            raise ModelError("give the effort z together with E: only for E = identity is it the gradient of H")
        port_matrix = trace("B", B, (n, None)) if B is not None else None
        if port_matrix is not None:
            ports = ports if ports is not None else port_matrix.shape[1]
        elif any(matrix is not None for matrix in (P, S, N, u)) and ports is None:
            raise ModelError("give B, or the names of the ports, together with P, S, N or u")
        port_names = parse_names("ports", ports if ports is not None else 0, "u")
        n_ports = len(port_names)

        def matrix(role: str, value: MatrixLike | None, rows: int, columns: int) -> Expr:
            return ca.SX(rows, columns) if value is None or not rows * columns else trace(role, value, (rows, columns))

        structure = PHStructure(
            x,
            t,
            k,
            H=energy,
            z=ca.densify(ca.gradient(energy, x)) if z is None else trace("z", z, (n,)),
            E=ca.SX.eye(n) if E is None else trace("E", E, (n, n)),
            r=ca.SX(n, 1) if r is None else trace("r", r, (n,)),
            J=matrix("J", J, n, n),
            R=matrix("R", R, n, n),
            B=matrix("B", B, n, n_ports),
            P=matrix("P", P, n, n_ports),
            S=matrix("S", S, n_ports, n_ports),
            N=matrix("N", N, n_ports, n_ports),
            inputs=(None,) * n_ports,
        )
        if u is not None:
            structure = _with_inputs(structure, values, port_names, u)
        self._initialize(structure, names, port_names, ParameterTable(values), points)

    @classmethod
    def from_structure(
        cls,
        structure: PHStructure,
        states: Sequence[str],
        ports: Sequence[str],
        parameters: ParameterTable,
        points: Sequence[tuple[float, Sequence[float]]] = (),
    ) -> PortHamiltonian:
        """Return a model from the expressions of its structure, which is checked.

        Parameters
        ----------
        structure : PHStructure
            Expressions of the matrices and the Hamiltonian.
        states, ports : sequence of str
            Names of the states and ports.
        parameters : ParameterTable
            Parameters of the model.
        points : sequence of (float, sequence of float), default ()
            Additional points of the structure check.

        Returns
        -------
        PortHamiltonian
            The model.

        Raises
        ------
        ModelError
            If the structure is violated.
        """
        model = cls.__new__(cls)
        model._initialize(
            structure, parse_names("states", states, ""), parse_names("ports", ports, ""), parameters, points
        )
        return model

    def _initialize(
        self,
        structure: PHStructure,
        states: tuple[str, ...],
        ports: tuple[str, ...],
        parameters: ParameterTable,
        points: Sequence[tuple[float, Sequence[float]]],
    ) -> None:
        self.structure, self.coordinates, self.ports = structure, states, ports
        self.model_parameters, self.parameter_table = parameters.model_parameters, parameters
        self.n, self.m = len(states), len(ports)
        check_structure(structure, states, ports, parameters.vector())
        for time, state in points:
            self.check(state, time)

    @property
    def states(self) -> tuple[str, ...]:
        """Names of the states."""
        return self.coordinates

    # -- ports --------------------------------------------------------------------------------------------------------
    @property
    def open_ports(self) -> tuple[str, ...]:
        """Names of the ports without input, which are available for interconnection."""
        return tuple(port for port, law in zip(self.ports, self.structure.inputs, strict=True) if law is None)

    def with_input(self, u: MatrixLike) -> PortHamiltonian:
        """Return the model with an input on its open ports.

        Parameters
        ----------
        u : array_like or callable
            Inputs in the order of the open ports: numbers, or a function of any of ``x y t k``.

        Returns
        -------
        PortHamiltonian
            The model with the input.

        Raises
        ------
        ModelError
            If there is no open port, or the input is an algebraic loop.
        """
        if not self.open_ports:
            raise ModelError("the model has no open port for an input")
        structure = _with_inputs(self.structure, self.model_parameters, self.ports, u)
        return PortHamiltonian.from_structure(structure, self.states, self.ports, self.parameter_table)

    # -- structure ----------------------------------------------------------------------------------------------------
    def check(self, x: object, t: float = 0.0, k: np.ndarray | None = None) -> None:
        """Check the port-Hamiltonian structure at a state.

        Parameters
        ----------
        x : array_like of shape (n,)
            State.
        t : float, default 0.0
            Time, in seconds.
        k : ndarray of shape (parameter_count,), optional
            Parameter vector. Default: the parameters of the model.

        Raises
        ------
        ModelError
            If the structure is violated, with the entry, the point and the residual, or cannot be evaluated.
        """
        values = self.parameter_vector() if k is None else k
        state = check_vector("x", x, self.states)
        if not check_at(self.structure, self.states, self.ports, state, float(t), values):
            shown = ", ".join(f"{name} = {value:.6g}" for name, value in zip(self.states, state, strict=True))
            raise ModelError(f"the model cannot be evaluated at t = {t:.6g}, {shown}: the result is not finite")

    @functools.cached_property
    def descriptor(self) -> Descriptor:
        """Descriptor form: residual, outputs and powers with the inputs inserted."""
        s = self.structure
        xdot = ca.SX.sym("xdot", self.n)
        u = _input_vector(s)
        y = (s.B + s.P).T @ s.z + (s.S - s.N) @ u
        residual = s.E @ xdot + s.r - (s.J - s.R) @ s.z - (s.B - s.P) @ u
        effort = ca.vertcat(s.z, u)
        # R alone gives shorter expressions; P and S are rarely nonzero
        dissipated = ca.bilin(s.R, s.z, s.z) if not (s.P.nnz() or s.S.nnz()) else ca.bilin(s.W, effort, effort)
        return Descriptor(
            s.x, xdot, s.t, s.k, ca.densify(residual), s.H, dissipated, ca.dot(y, u), ca.densify(u), ca.densify(y)
        )

    @functools.cached_property
    def _terms(self) -> dict[str, ca.Function]:
        d = self.descriptor
        arguments = [d.x, d.t, d.k]
        functions = {name: ca.Function(name, arguments, [getattr(d, name)]) for name in _TERMS}
        return functions | {"residual": ca.Function("residual", [d.x, d.xdot, d.t, d.k], [d.residual])}

    def residual(self, x: Expr, xdot: Any, t: float, k: Expr) -> Expr:
        """Return the residual ``E x' + r - (J - R) z - (B - P) u``.

        Parameters
        ----------
        x, xdot, t, k : array_like or casadi.SX
            State, its time derivative, time and parameter vector: numbers or expressions.

        Returns
        -------
        casadi.DM or casadi.SX
            Residual of shape (n, 1).
        """
        return self._terms["residual"](x, xdot, t, k)

    def stored(self, x: FloatArray, t: int, k: FloatArray) -> ca.DM:
        """Return the stored energy H.

        Parameters
        ----------
        x, t, k : array_like or casadi.SX
            State, time and parameter vector: numbers or expressions.

        Returns
        -------
        casadi.DM or casadi.SX
            Energy, in joules.
        """
        return self._terms["stored"](x, t, k)

    def dissipated(self, x: FloatArray, t: float, k: FloatArray) -> Any:
        """Return the dissipated power ``(z, u)^T W (z, u) >= 0``.

        Parameters
        ----------
        x, t, k : array_like or casadi.SX
            State, time and parameter vector: numbers or expressions.

        Returns
        -------
        casadi.DM or casadi.SX
            Power, in watts.
        """
        return self._terms["dissipated"](x, t, k)

    def supplied(self, x: Expr, t: float, k: Expr) -> Expr:
        """Return the supplied power ``y.u`` of the ports.

        Parameters
        ----------
        x, t, k : array_like or casadi.SX
            State, time and parameter vector: numbers or expressions.

        Returns
        -------
        casadi.DM or casadi.SX
            Power, in watts.
        """
        return self._terms["supplied"](x, t, k)

    def output(self, x: FloatArray, t: float, k: FloatArray) -> ca.DM:
        """Return the output y of all ports.

        Parameters
        ----------
        x, t, k : array_like or casadi.SX
            State, time and parameter vector: numbers or expressions.

        Returns
        -------
        casadi.DM or casadi.SX
            Output of shape (n_ports, 1).
        """
        return self._terms["y"](x, t, k)

    @property
    def layout(self) -> Layout:
        if not self.n:
            raise InputError("a memoryless component has no states: it is a part of a network, see interconnect_all")
        return super().layout

    @functools.cached_property
    def conservative(self) -> bool:
        """True if no power is dissipated or supplied."""
        d = self.descriptor
        return bool(ca.SX(d.dissipated).is_zero() and ca.SX(d.supplied).is_zero())

    @property
    def observables(self) -> Mapping[str, Any]:
        """Observables by name: powers, flows ``E x' + r``, efforts z, inputs and outputs."""
        d, s = self.descriptor, self.structure
        flow = (s.J - s.R) @ s.z + (s.B - s.P) @ d.u
        observables = {
            "dissipated_power": d.dissipated,
            "supplied_power": d.supplied,
            "effort": s.z,
            "flow": ca.densify(flow),
        }
        observables |= {"input": d.u, "output": d.y} if self.m else {}
        constraint, velocity_constraint = self.monitored_constraints()
        observables |= {"constraint": constraint} if constraint.numel() else {}
        return observables | ({"velocity_constraint": velocity_constraint} if velocity_constraint.numel() else {})

    def monitored_constraints(self) -> tuple[Expr, Expr]:
        """Return the constraints of mechanical parts at both levels, otherwise the algebraic equations."""
        s, d = self.structure, self.descriptor
        if self._constrained_mechanics:
            return s.mechanics.g, s.mechanics.g_dot  # type: ignore[union-attr]
        flows = ca.sparsify(s.E).sparsity()
        algebraic_rows = [i for i in range(self.n) if i not in flows.row()]
        return (d.residual[algebraic_rows] if algebraic_rows else ca.SX(0, 1)), ca.SX(0, 1)

    @property
    def _constrained_mechanics(self) -> bool:
        mechanics = self.structure.mechanics
        return mechanics is not None and bool(mechanics.g.numel())

    def velocity_expression(self) -> Expr:
        mechanics = self.structure.mechanics
        return super().velocity_expression() if mechanics is None else mechanics.v

    def is_guaranteed_by(self, scheme: ConservationGuarantees | None, name: str, k: np.ndarray | None = None) -> bool:
        """Return whether a quantity is guaranteed; constraints only as algebraic equations: at velocity level."""
        if name not in ("constraint", "velocity_constraint"):
            return super().is_guaranteed_by(scheme, name, k)
        imposed = "velocity_constraint" if self._constrained_mechanics else "constraint"
        return scheme is not None and "constraint" in scheme.conserves and name == imposed

    def initial_state(
        self, initial_values: Mapping[str, object], k: np.ndarray, t0: float, project: bool, redundant: str
    ) -> InitialState:
        check_initial_value_names(initial_values, ("x0",), "port-Hamiltonian system")
        x = check_vector("x0", initial_values.get("x0"), self.states, "state")
        x = check_initial_state(self, x, t0, k, project=project)
        # multipliers of higher index follow from derivatives of the equations: they are computed
        pencil = self.pencil
        prescribed = [j for j in range(self.n) if j not in pencil.algebraic_variables or pencil.indices[j] == 1]
        return InitialState(t0, {"x": self.consistent_initial_values(x, prescribed, k, t0, project)})

    def __repr__(self) -> str:
        ports = f"port{'' if self.m == 1 else 's'} {' '.join(self.ports)}" if self.m else "no ports"
        return f"<livens.PortHamiltonian: states {' '.join(self.states)}, {ports}>"


_TERMS = ("stored", "dissipated", "supplied", "y")


def _input_vector(s: PHStructure) -> Expr:
    """Return the input of all ports, zero for open ports."""
    return ca.vertcat(ca.SX(0, 1), *(ca.SX(0) if law is None else law for law in s.inputs))


def _with_inputs(structure: PHStructure, parameters: Parameters, ports: Sequence[str], u: MatrixLike) -> PHStructure:
    """Return the structure with the input `u` on its open ports; raise ModelError for an algebraic loop."""
    s = structure
    y = ca.SX.sym("y", len(ports))
    trace = FunctionTracer({"x": s.x, "y": y, "t": s.t, "k": ParameterNamespace(parameters.unpack_symbols(s.k))})
    open_ports = [i for i, law in enumerate(s.inputs) if law is None]
    law = ca.densify(trace("u", u, (len(open_ports),), "xytk"))
    feedthrough = ca.sparsify(ca.jacobian(law, y)) @ ca.sparsify(s.S - s.N)[:, open_ports]
    if feedthrough.nnz():
        # y = ... + (S - N) u: dependence of inputs on inputs
        i, j = int(feedthrough.sparsity().row()[0]), int(feedthrough.sparsity().get_col()[0])
        raise ModelError(
            f"algebraic loop: the input of port '{ports[open_ports[i]]}' asks for an output that depends, through "
            f"S - N, on the input of port '{ports[open_ports[j]]}' at the same time; make it a function of x, "
            "or use interconnect"
        )
    # remaining outputs in the law do not depend on open inputs
    output = (s.B + s.P).T @ s.z + (s.S - s.N) @ _input_vector(s)
    law = ca.substitute(law, y, ca.densify(output))
    inputs = list(s.inputs)
    for i, port in enumerate(open_ports):
        inputs[port] = law[i]
    return replace(s, inputs=tuple(inputs))
