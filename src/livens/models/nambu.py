"""Nambu systems: motion in R^n along the intersection of the level sets of n - 1 Hamiltonians and Casimirs."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import InputError, ModelError, explain_call_errors
from livens.expressions.name_parsing import Names, parse_names
from livens.expressions.parameters import ParameterNamespace, Parameters
from livens.expressions.probe import Probe
from livens.expressions.tracing import FunctionTracer, ModelFunction
from livens.models.base import ConservationGuarantees, InitialState, check_initial_value_names
from livens.models.descriptor import Descriptor, DescriptorModel
from livens.types import Expr
from livens.validation import check_vector


@explain_call_errors
class Nambu(DescriptorModel):
    """Nambu system with n - 1 Hamiltonians on an n-dimensional state space.

    The equations are ``x_i' = eps_ijk... dH_1/dx_j dH_2/dx_k...`` (Modin 2009, paper IV, eq. 1.1).

    In space the equations are ``x' = grad H_1 x grad H_2``, in the plane Hamilton's equations for ``(q, p)``. All
    Hamiltonians are conserved, and the flow preserves volume.

    A Nambu bracket of order k < n has k - 1 Hamiltonians and n - k Casimirs, whose gradients are the remaining columns
    of the determinant: brackets of order 3 and more are of this form locally (Modin 2009, thm. 2.10.3).

    Parameters
    ----------
    states : str, sequence of str or int
        Names of the states, or their number n.
    hamiltonians : sequence of callable or mapping of str to callable
        The n - 1 Hamiltonians, functions of ``x k``. They are monitored in a run as ``H1``, ``H2`` and so on, or by the
        keys of a mapping.
    casimirs : sequence of callable or mapping of str to callable, default ()
        Casimirs of a bracket of lower order, functions of ``x k``: together n - 1 functions. They are monitored in a
        run as ``C1``, ``C2`` and so on, or by the keys of a mapping.
    parameters : mapping, optional
        Parameter values by name, available to the Hamiltonians as ``k``.
    visual : callable, optional
        Function of ``x t k`` that returns shapes, see `livens.shapes`.

    Raises
    ------
    InputError
        If there are fewer than two states.
    ModelError
        If a Hamiltonian is invalid, or their number is not n - 1.

    Examples
    --------
    >>> import livens as lv
    >>> top = lv.Nambu(
    ...     "x1 x2 x3",
    ...     hamiltonians=[lambda x: x @ x / 2, lambda x, k: sum(x**2 / k.I) / 2],
    ...     parameters=dict(I=[0.5, 1.0, 2.0]),
    ... )
    >>> top.evaluate([1.0, 1.0, 1.0])
    array([-0.5,  1.5, -1. ])
    """

    type_label = "Nambu"
    formulations = ("nambu", "descriptor")
    separable = False

    def __init__(
        self,
        states: Names,
        *,
        hamiltonians: Sequence[ModelFunction] | Mapping[str, ModelFunction],
        casimirs: Sequence[ModelFunction] | Mapping[str, ModelFunction] = (),
        parameters: Mapping[str, object] | None = None,
        visual: ModelFunction | None = None,
    ) -> None:
        self.visual = visual
        self.coordinates = parse_names("states", states, "x")
        self.n = len(self.coordinates)
        self.model_parameters = Parameters(parameters)
        if self.n < 2:
            raise InputError(f"a Nambu system needs at least two states, got {self.n}")
        named = _named_functions("hamiltonians", hamiltonians, "H")
        #: Order k of the bracket: one more than the number of Hamiltonians.
        self.bracket_order = len(named) + 1
        named_casimirs = _named_functions("casimirs", casimirs, "C")
        if len(named) + len(named_casimirs) != self.n - 1 or not named:
            raise ModelError(
                f"a Nambu system with {self.n} states has {self.n - 1} Hamiltonian{'s' if self.n > 2 else ''}, "
                f"got {len(named)}" + (f" and {len(named_casimirs)} Casimirs" if named_casimirs else "")
            )
        if set(named) & set(named_casimirs):
            raise ModelError("a Hamiltonian and a Casimir have the same name")
        self.x, self.k = ca.SX.sym("x", self.n), ca.SX.sym("k", self.model_parameters.size)
        trace = FunctionTracer({"x": self.x, "k": ParameterNamespace(self.model_parameters.unpack_symbols(self.k))})
        functions = [*named.values(), *named_casimirs.values()]
        self.hamiltonians = tuple(trace(f"Hamiltonian {i + 1}", f, (), "xk") for i, f in enumerate(functions))
        for i, H in enumerate(self.hamiltonians):
            if not ca.depends_on(H, self.x):
                raise ModelError(f"Hamiltonian {i + 1} does not depend on the state, so nothing moves")
        self.symmetries = dict(zip([*named, *named_casimirs], self.hamiltonians, strict=True))

    # -- interface to a run -------------------------------------------------------------------------------------------
    @functools.cached_property
    def descriptor(self) -> Descriptor:
        xdot = ca.SX.sym("xdot", self.n)
        return Descriptor(self.x, xdot, ca.SX.sym("t"), self.k, ca.densify(xdot - self.vector_field))

    @property
    def observables(self) -> Mapping[str, Any]:
        return self.symmetries

    def initial_state(
        self, initial_values: Mapping[str, object], k: np.ndarray, t0: float, project: bool, redundant: str
    ) -> InitialState:
        check_initial_value_names(initial_values, ("x0",), "Nambu system")
        x = check_vector("x0", initial_values.get("x0"), self.coordinates, "state")
        if not np.all(np.isfinite(np.array(self.function(self.vector_field)(x, k)))):
            raise InputError(
                "the Hamiltonians cannot be differentiated at the initial values: the result is not finite"
            )
        return InitialState(t0, {"x": x})

    def is_guaranteed_by(self, scheme: ConservationGuarantees | None, name: str, k: np.ndarray | None = None) -> bool:
        """Return whether a scheme conserves an observable; some schemes conserve the first or second Hamiltonian."""
        conserved = () if scheme is None else scheme.conserves
        claims = zip(("first Hamiltonian", "second Hamiltonian"), self.symmetries, strict=False)
        return any(
            claim in conserved and name == hamiltonian for claim, hamiltonian in claims
        ) or super().is_guaranteed_by(scheme, name, k)

    # -- vector field -------------------------------------------------------------------------------------------------
    @functools.cached_property
    def vector_field(self) -> Expr:
        """Vector field ``x' = f(x)``."""
        return _generalized_cross_product([ca.gradient(H, self.x) for H in self.hamiltonians])

    def bracket(self, *functions: Any) -> Expr | None:
        """Return the Nambu bracket ``det(grad f_1, .., grad f_k, grad C_1, .., grad C_(n-k))`` of order k.

        In R^3, ``{H_1, H_2, f}`` is the time derivative of f (Modin 2009, eq. 2.54a).

        Parameters
        ----------
        *functions : casadi.SX
            Expressions of the state, as many as the order of the bracket: n without Casimirs.

        Returns
        -------
        casadi.SX
            The bracket.

        Raises
        ------
        InputError
            If the number of functions is not the order of the bracket.
        """
        if len(functions) != self.bracket_order:
            raise InputError(f"the bracket takes {self.bracket_order} functions of the state, got {len(functions)}")
        columns = (*functions, *self.hamiltonians[self.bracket_order - 1 :])
        return ca.det(ca.densify(ca.horzcat(*(ca.gradient(f, self.x) for f in columns))))

    def structure(self, which: int) -> Expr | None:
        """Return the matrix S of the Poisson system ``x' = S(x) grad H_which`` with the other Hamiltonians as Casimirs.

        S is skew-symmetric, and the gradients of the Casimirs are in its kernel.

        Parameters
        ----------
        which : int
            Number of the Hamiltonian, from 1 to n - 1.

        Returns
        -------
        casadi.SX
            Structure matrix of shape (n, n).

        Raises
        ------
        InputError
            If there is no such Hamiltonian.
        """
        if not 1 <= which <= self.n - 1:
            raise InputError(f"Hamiltonians are numbered from 1 to {self.n - 1}, got {which}")
        gradients = [ca.gradient(H, self.x) for H in self.hamiltonians]
        columns = []
        for j in range(self.n):
            unit = ca.SX.zeros(self.n)
            unit[j] = 1
            columns.append(_generalized_cross_product([*gradients[: which - 1], unit, *gradients[which:]]))
        return ca.horzcat(*columns)

    def function(self, expression: Expr) -> ca.Function:
        """Return a CasADi function of (x, k) for an expression of the state and the parameters.

        Parameters
        ----------
        expression : casadi.SX
            Expression of x and k.

        Returns
        -------
        casadi.Function
            Function of (x, k).
        """
        return ca.Function("f", [self.x, self.k], [expression])

    def evaluate(self, x: object, **changes: object) -> np.ndarray:
        """Return the value of the vector field ``x'`` in a state.

        Parameters
        ----------
        x : array_like of shape (n,)
            State.
        **changes
            Parameter values that differ from those of the model.

        Returns
        -------
        ndarray of shape (n,)
            Time derivative of the state.
        """
        state = check_vector("x", x, self.coordinates)
        return np.array(self.function(self.vector_field)(state, self.parameter_vector(changes))).ravel()

    # -- properties ---------------------------------------------------------------------------------------------------
    @functools.cached_property
    def is_divergence_free_componentwise(self) -> bool:
        """True if ``df_i/dx_i = 0`` for every component, as for Hamiltonians that are sums of functions of one state.

        The flow of every single component is then linear in time, as are the parts of `nambu-mt` (Modin 2009, 4.1).
        """
        return not any(ca.depends_on(self.vector_field[i], self.x[i]) for i in range(self.n))

    @functools.cached_property
    def diagonal_coefficients(self) -> Any:
        """Coefficients d of Hamiltonians ``sum_i d_i x_i^2/2``, of shape (n - 1, n); None for other Hamiltonians."""
        rows = []
        for H in self.hamiltonians:
            hessian, gradient = ca.hessian(H, self.x)
            d = ca.diag(hessian)
            off_diagonal = ca.sparsify(hessian - ca.diag(d))
            gradient_at_zero = ca.substitute(gradient, self.x, ca.SX.zeros(self.n))
            if (
                off_diagonal.nnz()
                or ca.depends_on(hessian, self.x)
                or not ca.sparsify(ca.simplify(gradient_at_zero)).is_zero()
            ):
                return None
            rows.append(ca.densify(d).T)
        return ca.vertcat(*rows)

    def reversible(self, state: int | str) -> bool:
        """Return whether ``x_i -> -x_i`` reverses the motion (Modin 2009, paper IV, def. 1.2).

        Parameters
        ----------
        state : int or str
            Index or name of the state x_i.

        Returns
        -------
        bool
            Whether the system is reversible.

        Examples
        --------
        >>> import livens as lv
        >>> lv.Nambu(3, hamiltonians=[lambda x: x @ x / 2, lambda x: x[0] ** 2 + 2 * x[1] ** 2]).reversible("x0")
        True
        """
        i = self.coordinates.index(state) if isinstance(state, str) else int(state)
        mirror = np.ones(self.n)
        mirror[i] = -1
        reflected = ca.substitute(self.vector_field, self.x, mirror * self.x)
        probe = Probe([self.x, self.k], seed=5, fixed={1: self.parameter_vector()})
        return probe.is_zero(mirror * self.vector_field + reflected, 1 + ca.fabs(self.vector_field)) is True

    def __str__(self) -> str:
        lines = [f"Nambu system with {self.n} states ({' '.join(self.coordinates)})"]
        lines += [f"  componentwise    {'yes' if self.is_divergence_free_componentwise else 'no'}"]
        if self.model_parameters.values:
            lines += [f"  parameters       {', '.join(f'{name} = {v}' for name, v in self.parameters.items())}"]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<livens.Nambu: states {' '.join(self.coordinates)}>"


def _named_functions(role: str, functions: object, prefix: str) -> dict[str, ModelFunction]:
    """Return functions by name, with numbered names for a list."""
    if isinstance(functions, Mapping):
        named = dict(functions)
    elif isinstance(functions, Sequence):
        named = {f"{prefix}{i + 1}": function for i, function in enumerate(functions)}
    else:
        named = {}
    if not isinstance(functions, (Mapping, Sequence)) or not all(callable(f) for f in named.values()):
        raise ModelError(f"{role} must be a list of functions, got {functions!r}")
    return named


def _generalized_cross_product(gradients: Sequence[Expr]) -> Expr:
    """Return the generalized cross product of n - 1 vectors; its components are the signed minors."""
    matrix = ca.densify(ca.horzcat(*gradients)).T
    n = matrix.shape[1]
    minors = [ca.det(matrix[:, [j for j in range(n) if j != i]]) for i in range(n)]
    return ca.vertcat(*((-1) ** i * minor for i, minor in enumerate(minors)))
