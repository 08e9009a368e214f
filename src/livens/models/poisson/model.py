"""Poisson systems: a skew-symmetric structure matrix with the Jacobi identity, a Hamiltonian, Casimirs."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import InputError, ModelError, explain_call_errors
from livens.expressions.name_parsing import Names, parse_names
from livens.expressions.parameters import ParameterNamespace, Parameters, ParameterTable
from livens.expressions.probe import Probe
from livens.expressions.tracing import FunctionTracer
from livens.models.base import ConservationGuarantees
from livens.models.port_hamiltonian.model import MatrixLike, PortHamiltonian
from livens.models.port_hamiltonian.structure import PHStructure
from livens.types import Expr, ModelFunction

#: Largest number of states for which the Jacobi identity is checked: it has n^3 entries.
_MAX_JACOBI_STATES = 24


@explain_call_errors
class Poisson(PortHamiltonian):
    """Poisson system ``x' = J(x) grad H(x)`` with the bracket ``{f, g} = grad f^T J(x) grad g``.

    It is a port-Hamiltonian system without dissipation and ports whose structure matrix satisfies the Jacobi identity.
    Casimirs C are constants of every motion, as ``J grad C = 0``. Skew-symmetry, the Jacobi identity (up to 24 states)
    and the Casimirs are checked at random states.

    Parameters
    ----------
    states : str, sequence of str or int
        Names of the states, or their number n.
    structure : array_like or callable
        Structure matrix J of shape (n, n): numbers, or a function of ``x k``.
    hamiltonian : callable
        Hamiltonian H, a function of ``x k``, in joules.
    casimirs : mapping of str to callable, optional
        Casimirs by name, functions of ``x k``, which are monitored in a run.
    invariants : mapping of str to callable, optional
        Other conserved quantities by name, functions of ``x k``, which are monitored in a run.
    parameters : mapping, optional
        Parameter values by name, available to functions as ``k``.
    visual : callable, optional
        Function of ``x t k`` that returns shapes, see `livens.shapes`.

    Raises
    ------
    InputError
        If there is no state.
    ModelError
        If the structure matrix is not skew-symmetric, violates the Jacobi identity, or a Casimir is none.

    Examples
    --------
    >>> import livens as lv
    >>> hat = lambda x: [[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]]
    >>> top = lv.Poisson(
    ...     "m1 m2 m3",
    ...     structure=hat,
    ...     hamiltonian=lambda x, k: sum(x**2 / k.I) / 2,
    ...     casimirs=dict(size=lambda x: x @ x),
    ...     parameters=dict(I=[1.0, 2.0, 3.0]),
    ... )
    >>> run = lv.simulate(top, x0=[1.0, 0.1, 0.5], scheme="gauss-2", h=0.1, t_end=10.0)
    >>> bool(run.summary.momentum_drift["size"] < 1e-13)
    True
    """

    type_label = "Poisson"
    #: Casimirs by name, as expressions of x and k.
    casimirs: Mapping[str, Any] = {}

    def __init__(
        self,
        states: Names,
        *,
        structure: MatrixLike,
        hamiltonian: ModelFunction,
        casimirs: Mapping[str, ModelFunction] | None = None,
        invariants: Mapping[str, ModelFunction] | None = None,
        parameters: Mapping[str, object] | None = None,
        visual: ModelFunction | None = None,
    ) -> None:
        names, values = parse_names("states", states, "x"), Parameters(parameters)
        n = len(names)
        if n == 0:
            raise InputError("a Poisson system needs at least one state")
        x, k = ca.SX.sym("x", n), ca.SX.sym("k", values.size)
        trace = FunctionTracer({"x": x, "k": ParameterNamespace(values.unpack_symbols(k))})
        energy = trace("hamiltonian", hamiltonian, (), "xk")
        matrix = trace("structure", structure, (n, n), "xk")
        self.visual = visual
        self._initialize(poisson_structure(x, k, energy, matrix), names, (), ParameterTable(values), ())
        for role, functions in (("casimirs", casimirs), ("invariants", invariants)):
            if functions is not None and not isinstance(functions, Mapping):
                raise ModelError(f"{role} must map names to functions, got {functions!r}")
        self.casimirs = {name: trace(name, f, (), "xk") for name, f in (casimirs or {}).items()}
        self.symmetries = {
            **self.casimirs,
            **{name: trace(name, f, (), "xk") for name, f in (invariants or {}).items()},
        }
        self._check_jacobi_identity()
        self._check_casimirs()

    # -- structure ----------------------------------------------------------------------------------------------------
    @property
    def structure_matrix(self) -> Any:
        """Structure matrix J as a CasADi function of (x, k).

        Returns
        -------
        casadi.Function
            Function whose value has the shape (n, n).
        """
        s = self.structure
        return ca.Function("J", [s.x, s.k], [ca.densify(s.J)])

    def _probe(self, seed: int, k: np.ndarray | None = None) -> Probe:
        s = self.structure
        return Probe([s.x, s.k], seed=seed, fixed={1: self.parameter_vector() if k is None else k})

    def _check_jacobi_identity(self) -> None:
        if self.n > _MAX_JACOBI_STATES:
            return
        s = self.structure
        direction = [ca.jtimes(ca.vec(s.J), s.x, s.J[:, i]) for i in range(self.n)]  # of J along the columns of J
        J_derivatives = [ca.reshape(part, self.n, self.n) for part in direction]
        for i in range(self.n):
            for j in range(i):
                for l in range(j):  # noqa: E741  # i, j, l are states
                    terms = ca.vertcat(J_derivatives[l][i, j], J_derivatives[i][j, l], J_derivatives[j][l, i])
                    if self._probe(11).is_zero(ca.sum1(terms), 1 + ca.sum1(ca.fabs(terms)), 1e-10) is False:
                        a, b, c = (self.coordinates[state] for state in (i, j, l))
                        raise ModelError(
                            f"the structure matrix violates the Jacobi identity for the states {a}, {b} and {c}: it "
                            "defines no Poisson bracket; use PortHamiltonian for systems without one"
                        )

    def _check_casimirs(self) -> None:
        s = self.structure
        for name, casimir in self.casimirs.items():
            gradient = ca.gradient(casimir, s.x)
            if self._probe(12).is_zero(s.J @ gradient, ca.fabs(s.J) @ ca.fabs(gradient) + 1, 1e-10) is False:
                raise ModelError(
                    f"'{name}' is no Casimir: the product of the structure matrix with its gradient is not zero; "
                    "give it as one of the invariants"
                )

    def bracket(self, f: Any, g: Any) -> Any:
        """Return the Poisson bracket ``{f, g} = grad f^T J grad g``.

        Parameters
        ----------
        f, g : casadi.SX
            Expressions of the state, such as ``model.structure.H``.

        Returns
        -------
        casadi.SX
            Bracket; with the Hamiltonian as g the time derivative of f.
        """
        s = self.structure
        return ca.dot(ca.gradient(f, s.x), s.J @ ca.gradient(g, s.x))

    def is_invariant(self, name: str, k: np.ndarray) -> bool:
        """Return whether the bracket of a monitored quantity with the Hamiltonian vanishes at random states."""
        s = self.structure
        rates = ca.jtimes(self.symmetries[name], s.x, s.J @ s.z)
        scale = 1 + ca.fabs(ca.jacobian(self.symmetries[name], s.x)) @ ca.fabs(s.J) @ ca.fabs(s.z)
        return self._probe(13, k).is_zero(rates, scale, 1e-10) is True

    def is_guaranteed_by(self, scheme: ConservationGuarantees | None, name: str, k: np.ndarray | None = None) -> bool:
        """Return whether a scheme conserves a quantity: by name, all Casimirs, or all invariants linear in x."""
        conserved = () if scheme is None else scheme.conserves
        if name in self.casimirs and "casimirs" in conserved:
            return True
        if name in self.symmetries and "linear_invariants" in conserved and self._is_linear(name):
            return True
        return super().is_guaranteed_by(scheme, name, k)

    def _is_linear(self, name: str) -> bool:
        x = self.structure.x
        return not ca.depends_on(ca.jacobian(self.symmetries[name], x), x)

    @functools.cached_property
    def conservative(self) -> bool:
        return True

    @property
    def observables(self) -> Mapping[str, Any]:
        return dict(self.symmetries)

    def monitored_constraints(self) -> tuple[Expr, Expr]:
        return ca.SX(0, 1), ca.SX(0, 1)

    def __repr__(self) -> str:
        return f"<livens.{type(self).__name__}: states {' '.join(self.states)}>"


def poisson_structure(x: Expr, k: Expr, energy: Expr, matrix: Expr) -> PHStructure:
    """Return the port-Hamiltonian structure without dissipation and ports of a Poisson system."""
    n = x.numel()
    zero = ca.SX(n, n)
    return PHStructure(
        x,
        ca.SX.sym("t"),
        k,
        H=energy,
        z=ca.densify(ca.gradient(energy, x)),
        E=ca.SX.eye(n),
        r=ca.SX(n, 1),
        J=ca.sparsify(matrix),
        R=zero,
        B=ca.SX(n, 0),
        P=ca.SX(n, 0),
        S=ca.SX(0, 0),
        N=ca.SX(0, 0),
        inputs=(),
    )
