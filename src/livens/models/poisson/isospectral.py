"""Isospectral flows of matrices: ``W' = B(W) W - W B(W)``, with constant eigenvalues."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import InputError, ModelError, explain_call_errors
from livens.expressions.parameters import ParameterNamespace, Parameters
from livens.expressions.tracing import FunctionTracer
from livens.math import from_casadi
from livens.models.base import ConservationGuarantees, InitialState
from livens.models.descriptor import Descriptor, DescriptorModel
from livens.types import Expr, ModelFunction
from livens.validation import check_integer

#: Name of the monitored invariants.
TRACES = "traces"
#: Largest number of rows of the matrix.
_MAX_ROWS = 40


@explain_call_errors
class IsospectralFlow(DescriptorModel):
    """Isospectral flow ``W' = [B(W), W]`` of a matrix W, such as a Lax pair or a Lie-Poisson system of matrices.

    The eigenvalues of W are constant. With a Hamiltonian, ``B = (dH/dW)^T``: a Lie-Poisson system, whose Casimirs are
    the traces of the powers of W. For skew-symmetric W and a B that is skew-symmetric then, it describes free rigid
    bodies in n dimensions.

    Parameters
    ----------
    rows : int
        Number n of rows of W. The state is W row by row, with the names "w00", "w01" and so on.
    field : callable, optional
        Matrix B of shape (n, n), a function of ``W k``.
    hamiltonian : callable, optional
        Hamiltonian, a function of ``W k``, instead of `field`.
    parameters : mapping, optional
        Parameter values by name, available to functions as ``k``.
    visual : callable, optional
        Function of ``x t k`` that returns shapes, see `livens.shapes`.

    Raises
    ------
    InputError
        If the number of rows is not between 2 and 40.
    ModelError
        If neither or both of `field` and `hamiltonian` are given, or the function is invalid.

    Examples
    --------
    >>> import numpy as np, livens as lv
    >>> toda = lv.IsospectralFlow(3, field=lambda W: np.triu(W, 1) - np.triu(W, 1).T)
    >>> W0 = [[1.0, 0.5, 0.0], [0.5, -0.5, 0.3], [0.0, 0.3, 0.2]]
    >>> run = lv.simulate(toda, x0=W0, scheme="isospectral-midpoint", h=0.1, t_end=10.0)
    >>> W1 = run.x[-1].reshape(3, 3)
    >>> bool(np.abs(np.linalg.eigvalsh(W1) - np.linalg.eigvalsh(W0)).max() < 1e-13)
    True
    """

    type_label = "isospectral flow"
    formulations = ("isospectral", "descriptor")
    default_scheme = "isospectral-midpoint"

    def __init__(
        self,
        rows: int,
        *,
        field: ModelFunction | None = None,
        hamiltonian: ModelFunction | None = None,
        parameters: Mapping[str, object] | None = None,
        visual: ModelFunction | None = None,
    ) -> None:
        self.rows = n = check_integer("rows", rows, 2, _MAX_ROWS)
        if (field is None) == (hamiltonian is None):
            raise ModelError("give either field, the matrix B as a function of W, or hamiltonian")
        separator = "_" if n > 10 else ""
        self.coordinates = tuple(f"w{i}{separator}{j}" for i in range(n) for j in range(n))
        self.model_parameters, self.visual = Parameters(parameters), visual
        self.x, self.k = ca.SX.sym("x", n * n), ca.SX.sym("k", self.model_parameters.size)
        matrix = from_casadi(self.x).reshape(n, n)
        namespace = ParameterNamespace(self.model_parameters.unpack_symbols(self.k))
        trace = FunctionTracer({"W": matrix, "k": namespace}, verb="return")
        self.H = None if hamiltonian is None else trace("hamiltonian", hamiltonian, (), "Wk")
        if self.H is None:
            B = trace("field", field, (n, n), "Wk")
        else:  # the state is W row by row, CasADi's columns are rows of W
            B = ca.reshape(ca.densify(ca.gradient(self.H, self.x)), n, n)
        self.field = ca.Function("B", [self.x, self.k], [ca.densify(B)])
        powers = [self.matrix(self.x)]
        for _ in range(n - 1):
            powers.append(powers[-1] @ powers[0])
        self.symmetries = {TRACES: ca.vertcat(*(ca.trace(power) for power in powers))}

    def matrix(self, x: Any) -> Any:
        """Return the matrix W of a state.

        Parameters
        ----------
        x : casadi.SX or casadi.DM
            State, the entries of W row by row.

        Returns
        -------
        casadi.SX or casadi.DM
            Matrix of shape (rows, rows).
        """
        return ca.reshape(x, self.rows, self.rows).T

    def state(self, W: Expr) -> Expr:
        """Return the state of a matrix W, row by row.

        Parameters
        ----------
        W : casadi.SX
            Matrix of shape (rows, rows).

        Returns
        -------
        casadi.SX
            Column of its entries.
        """
        return ca.vec(W.T)

    @property
    def structure_matrix(self) -> Any:
        """Structure matrix J of ``x' = J grad H`` as a CasADi function of (x, k).

        Returns
        -------
        casadi.Function
            Function whose value has the shape (n^2, n^2).

        Raises
        ------
        InputError
            If the flow has no Hamiltonian.
        """
        if self.H is None:
            raise InputError("an isospectral flow without a Hamiltonian has no Poisson bracket: give hamiltonian=")
        gradient, W = ca.SX.sym("gradient", self.rows**2), self.matrix(self.x)
        B = ca.reshape(gradient, self.rows, self.rows)
        J = ca.jacobian(self.state(B @ W - W @ B), gradient)
        return ca.Function("J", [self.x, self.k], [ca.densify(J)])

    @functools.cached_property
    def descriptor(self) -> Descriptor:
        xdot, W, B = ca.SX.sym("xdot", self.rows**2), self.matrix(self.x), self.field(self.x, self.k)
        residual = xdot - self.state(B @ W - W @ B)
        return Descriptor(self.x, xdot, ca.SX.sym("t"), self.k, ca.densify(residual), self.H)

    @property
    def conservative(self) -> bool:
        return self.H is not None

    @property
    def observables(self) -> Mapping[str, Any]:
        return dict(self.symmetries)

    def is_guaranteed_by(self, scheme: ConservationGuarantees | None, name: str, k: np.ndarray | None = None) -> bool:
        """Return whether a scheme conserves a quantity: by name, or the traces as Casimirs."""
        if scheme is not None and name == TRACES and "casimirs" in scheme.conserves:
            return True
        return super().is_guaranteed_by(scheme, name, k)

    def initial_state(
        self, initial_values: Mapping[str, object], k: np.ndarray, t0: float, project: bool, redundant: str
    ) -> InitialState:
        initial = initial_values.get("x0")
        if isinstance(initial, (Sequence, np.ndarray)) and np.ndim(initial) == 2:
            if np.shape(initial) != (self.rows, self.rows):
                raise InputError(f"x0 must be a matrix of shape ({self.rows}, {self.rows}), got {np.shape(initial)}")
            initial_values = {**initial_values, "x0": np.asarray(initial, dtype=float).ravel()}
        return super().initial_state(initial_values, k, t0, project, redundant)

    def __repr__(self) -> str:
        return f"<livens.IsospectralFlow: {self.rows} rows>"
