"""Port-Hamiltonian descriptor systems (pH-DAEs) as models, with checks of their structure."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import InputError, ModelError
from livens.expressions.names import Names, names_of
from livens.expressions.numbers import vector
from livens.expressions.parameters import Namespace, Parameters, ParameterTable
from livens.expressions.read import Reader
from livens.models.descriptor import Descriptor, DescriptorModel
from livens.models.model import InitialState, Promising, only
from livens.models.port_hamiltonian.start import start_values
from livens.models.port_hamiltonian.structure import Structure, check, check_everywhere

#: Numbers, or a function of some of x, t, k that returns numbers.
Given = Callable[..., Any] | Sequence[Any] | np.ndarray


class PortHamiltonian(DescriptorModel):
    """Port-Hamiltonian descriptor system (pH-DAE, S002 def. 4.1).

    The equations are ``E x' + r = (J - R) z + (B - P) u`` with the output ``y = (B + P)^T z + (S - N) u``. Matrices and
    vectors are numbers, or functions of any of ``x t k`` (states, time, parameters) by argument name.

    The structure is checked at construction, at random states and at `points`: ``[[J, B], [-B^T, N]]`` is
    skew-symmetric, ``[[R, P], [P^T, S]]`` is symmetric positive semidefinite, ``dH/dx = E^T z`` and ``dH/dt = z.r``.

    Parameters
    ----------
    states : str, sequence of str or int
        Names of the states ("x1 x2"), or their number n.
    H : callable
        Hamiltonian, the stored energy, in joules.
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

    kind = "PortHamiltonian"

    def __init__(
        self,
        states: Names,
        *,
        H: Callable[..., Any],
        z: Given | None = None,
        E: Given | None = None,
        r: Given | None = None,
        J: Given | None = None,
        R: Given | None = None,
        B: Given | None = None,
        P: Given | None = None,
        S: Given | None = None,
        N: Given | None = None,
        u: Given | None = None,
        parameters: Mapping[str, Any] | None = None,
        ports: Names | None = None,
        points: Sequence[tuple[float, Sequence[float]]] = (),
    ) -> None:
        names, values = names_of("states", states, "x"), Parameters(parameters)
        n = len(names)
        if n == 0:
            raise InputError("a port-Hamiltonian system needs at least one state")
        x, t, k = ca.SX.sym("x", n), ca.SX.sym("t"), ca.SX.sym("k", values.size)
        read = Reader({"x": x, "t": t, "k": Namespace(values.symbols(k))})
        energy = read("H", H, ())
        if E is not None and z is None:
            raise ModelError("give the effort z together with E: only for E = identity is it the gradient of H")
        port_matrix = read("B", B, (n, None)) if B is not None else None
        if port_matrix is not None:
            ports = ports if ports is not None else port_matrix.shape[1]
        elif any(matrix is not None for matrix in (P, S, N, u)) and ports is None:
            raise ModelError("give B, or the names of the ports, together with P, S, N or u")
        port_names = names_of("ports", ports if ports is not None else 0, "u")
        m_ = len(port_names)

        def matrix(role: str, given: Given | None, rows: int, columns: int) -> Any:
            return ca.SX(rows, columns) if given is None or not rows * columns else read(role, given, (rows, columns))

        structure = Structure(
            x,
            t,
            k,
            H=energy,
            z=ca.densify(ca.gradient(energy, x)) if z is None else read("z", z, (n,)),
            E=ca.SX.eye(n) if E is None else read("E", E, (n, n)),
            r=ca.SX(n, 1) if r is None else read("r", r, (n,)),
            J=matrix("J", J, n, n),
            R=matrix("R", R, n, n),
            B=matrix("B", B, n, m_),
            P=matrix("P", P, n, m_),
            S=matrix("S", S, m_, m_),
            N=matrix("N", N, m_, m_),
            laws=(None,) * m_,
        )
        if u is not None:
            structure = _with_laws(structure, values, port_names, u)
        self._adopt(structure, names, port_names, ParameterTable(values), points)

    @classmethod
    def of(
        cls,
        structure: Structure,
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
        model._adopt(structure, names_of("states", states, ""), names_of("ports", ports, ""), parameters, points)
        return model

    def _adopt(
        self,
        structure: Structure,
        states: tuple[str, ...],
        ports: tuple[str, ...],
        parameters: ParameterTable,
        points: Sequence[tuple[float, Sequence[float]]],
    ) -> None:
        self.structure, self.coordinates, self.ports = structure, states, ports
        self.shared, self.parameter_table = parameters.shared, parameters
        self.n, self.m = len(states), len(ports)
        check_everywhere(structure, states, ports, parameters.vector())
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
        return tuple(port for port, law in zip(self.ports, self.structure.laws, strict=True) if law is None)

    def with_input(self, u: Given) -> PortHamiltonian:
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
        structure = _with_laws(self.structure, self.shared, self.ports, u)
        return PortHamiltonian.of(structure, self.states, self.ports, self.parameter_table)

    # -- structure ----------------------------------------------------------------------------------------------------
    def check(self, x: Any, t: float = 0.0, k: np.ndarray | None = None) -> None:
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
        state = vector("x", x, self.states)
        if not check(self.structure, self.states, self.ports, state, float(t), values):
            shown = ", ".join(f"{name} = {value:.6g}" for name, value in zip(self.states, state, strict=True))
            raise ModelError(f"the model cannot be evaluated at t = {t:.6g}, {shown}: the result is not finite")

    @functools.cached_property
    def descriptor(self) -> Descriptor:
        """Descriptor form: residual, outputs and powers with the inputs inserted."""
        s = self.structure
        xdot = ca.SX.sym("xdot", self.n)
        u = _inputs(s)
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
        at = [d.x, d.t, d.k]
        functions = {name: ca.Function(name, at, [getattr(d, name)]) for name in _TERMS}
        return functions | {"residual": ca.Function("residual", [d.x, d.xdot, d.t, d.k], [d.residual])}

    def residual(self, x: Any, xdot: Any, t: Any, k: Any) -> Any:
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

    def stored(self, x: Any, t: Any, k: Any) -> Any:
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

    def dissipated(self, x: Any, t: Any, k: Any) -> Any:
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

    def supplied(self, x: Any, t: Any, k: Any) -> Any:
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

    def output(self, x: Any, t: Any, k: Any) -> Any:
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

    @functools.cached_property
    def conservative(self) -> bool:
        """Whether no power is dissipated or supplied."""
        d = self.descriptor
        return bool(ca.SX(d.dissipated).is_zero() and ca.SX(d.supplied).is_zero())

    @property
    def observables(self) -> Mapping[str, Any]:
        """Observables by name: powers, flows ``E x' + r``, efforts z, inputs and outputs."""
        d, s = self.descriptor, self.structure
        flow = (s.J - s.R) @ s.z + (s.B - s.P) @ d.u
        found = {
            "dissipated_power": d.dissipated,
            "supplied_power": d.supplied,
            "effort": s.z,
            "flow": ca.densify(flow),
        }
        found |= {"input": d.u, "output": d.y} if self.m else {}
        constraint, rate = self.watched_constraints()
        found |= {"constraint": constraint} if constraint.numel() else {}
        return found | ({"velocity_constraint": rate} if rate.numel() else {})

    def watched_constraints(self) -> tuple[Any, Any]:
        """Return the constraints of mechanical parts at both levels, otherwise the algebraic equations."""
        s, d = self.structure, self.descriptor
        if self._constrained_mechanics:
            return s.mechanics.g, s.mechanics.rate  # type: ignore[union-attr]
        flows = ca.sparsify(s.E).sparsity()
        without = [i for i in range(self.n) if i not in flows.row()]
        return (d.residual[without] if without else ca.SX(0, 1)), ca.SX(0, 1)

    @property
    def _constrained_mechanics(self) -> bool:
        mechanics = self.structure.mechanics
        return mechanics is not None and bool(mechanics.g.numel())

    def velocities(self) -> Any:
        mechanics = self.structure.mechanics
        return super().velocities() if mechanics is None else mechanics.v

    def promised(self, scheme: Promising | None, name: str, k: np.ndarray | None = None) -> bool:
        """Return whether a quantity is guaranteed; constraints only as algebraic equations: at velocity level."""
        if name not in ("constraint", "velocity_constraint"):
            return super().promised(scheme, name, k)
        imposed = "velocity_constraint" if self._constrained_mechanics else "constraint"
        return scheme is not None and "constraint" in scheme.conserves and name == imposed

    def start(self, given: Mapping[str, Any], k: np.ndarray, t0: float, project: bool, redundant: str) -> InitialState:
        only(given, ("x0",), "port-Hamiltonian system")
        x = vector("x0", given.get("x0"), self.states, "state")
        x = start_values(self, x, t0, k, project=project)
        # multipliers of higher index follow from derivatives of the equations: they are computed
        pencil = self.pencil
        chosen = [j for j in range(self.n) if j not in pencil.algebraic or pencil.indices[j] == 1]
        return InitialState(t0, {"x": self.consistent(x, chosen, k, t0, project)})

    def __repr__(self) -> str:
        ports = f"port{'' if self.m == 1 else 's'} {' '.join(self.ports)}" if self.m else "no ports"
        return f"<livens.PortHamiltonian: states {' '.join(self.states)}, {ports}>"


_TERMS = ("stored", "dissipated", "supplied", "y")


def _inputs(s: Structure) -> Any:
    """Return the input of all ports, zero for open ports."""
    return ca.vertcat(ca.SX(0, 1), *(ca.SX(0) if law is None else law for law in s.laws))


def _with_laws(structure: Structure, parameters: Parameters, ports: Sequence[str], u: Given) -> Structure:
    """Return the structure with the input `u` on its open ports; raise ModelError for an algebraic loop."""
    s = structure
    y = ca.SX.sym("y", len(ports))
    read = Reader({"x": s.x, "y": y, "t": s.t, "k": Namespace(parameters.symbols(s.k))})
    free = [i for i, law in enumerate(s.laws) if law is None]
    law = ca.densify(read("u", u, (len(free),), "xytk"))
    through = ca.sparsify(ca.jacobian(law, y)) @ ca.sparsify(s.S - s.N)[:, free]
    if through.nnz():
        # y = ... + (S - N) u: dependence of inputs on inputs
        i, j = int(through.sparsity().row()[0]), int(through.sparsity().get_col()[0])
        raise ModelError(
            f"algebraic loop: the input of port '{ports[free[i]]}' asks for an output that depends, through S - N, on "
            f"the input of port '{ports[free[j]]}' at the same time; make it a function of x, or use interconnect"
        )
    # remaining outputs in the law do not depend on open inputs
    output = (s.B + s.P).T @ s.z + (s.S - s.N) @ _inputs(s)
    law = ca.substitute(law, y, ca.densify(output))
    laws = list(s.laws)
    for i, port in enumerate(free):
        laws[port] = law[i]
    return replace(s, laws=tuple(laws))
