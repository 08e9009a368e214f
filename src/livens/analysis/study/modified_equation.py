"""Modified equations of Runge-Kutta methods: vector fields and Hamiltonians whose exact flow is the step (B-series).

A method of order p solves ``y' = f + h^p f_(p+1) + ...`` up to any power of h. The terms are elementary differentials
of f. For a symplectic method they are Hamiltonian, with ``H + h^p H_(p+1) + ...``, for others the rate of the energy
along them is the drift of a run (Hairer, Lubich and Wanner 2006, IX.9).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from livens import schemes
from livens.errors import InputError, explain_call_errors
from livens.models.descriptor import DescriptorModel
from livens.models.hamiltonian.model import Hamiltonian
from livens.models.problem import Problem
from livens.models.system import System
from livens.schemes.core.scheme import Scheme
from livens.schemes.discretization.phase_space_map import as_hamiltonian
from livens.schemes.reference_methods import DiagonallyImplicitRK, VectorField
from livens.schemes.splitting.composition import Composition
from livens.schemes.symplectic.variational import Variational
from livens.schemes.tableaus.b_series import ColouredTree, ModifiedCoefficients, coloured_trees
from livens.schemes.tableaus.tableau import PartitionedTableau, Tableau
from livens.types import ArrayLike, Expr
from livens.validation import check_integer

if TYPE_CHECKING:
    from livens.results.result import Result

#: Largest power of h: the number of trees grows fourfold with each power.
_MAX_POWER = 8

#: Runge-Kutta matrix and weights of each part of the state.
Methods = tuple[tuple[np.ndarray, np.ndarray], ...]


@dataclass(frozen=True, eq=False)
class ModifiedEquation:
    """Truncated modified equation ``y' = sum_j h^j f_j(y)`` of a Runge-Kutta method.

    Parameters
    ----------
    model : Hamiltonian or DescriptorModel
        Model, in coordinates and momenta if it is mechanical.
    scheme : str
        Name of the scheme.
    state : casadi.SX
        Symbol of the state y: x, or q and p.
    terms : tuple of casadi.SX
        Terms f_0, f_1, ... in the order of their powers of h.
    """

    model: Hamiltonian | DescriptorModel
    scheme: str
    state: Expr
    terms: tuple[Expr, ...]

    @property
    def order(self) -> int:
        """Largest power of h."""
        return len(self.terms) - 1

    def expression(self, h: float | Expr) -> Expr:
        """Return the sum of the terms as an expression of `state` and the parameters.

        Parameters
        ----------
        h : float or casadi.SX
            Step size.

        Returns
        -------
        casadi.SX
            Modified vector field.
        """
        return sum((term * h**j for j, term in enumerate(self.terms)), ca.SX.zeros(self.state.numel()))

    def evaluate(self, state: ArrayLike, h: float, parameters: Mapping[str, ArrayLike] | None = None) -> np.ndarray:
        """Return the modified vector field at states.

        Parameters
        ----------
        state : array_like of shape (n_state,) or (n_rows, n_state)
            States x, or coordinates followed by momenta.
        h : float
            Step size.
        parameters : dict of str to float, optional
            Parameter values that differ from those of the model.

        Returns
        -------
        ndarray of the shape of `state`
            Time derivative of the state.
        """
        return self._values(self.expression(float(h)), state, parameters).reshape(np.shape(state))

    def energy_rate(self, state: ArrayLike, h: float, parameters: Mapping[str, ArrayLike] | None = None) -> np.ndarray:
        """Return the rate of the Hamiltonian along the modified equation, in watts: the drift of the method.

        Parameters
        ----------
        state : array_like of shape (n_state,) or (n_rows, n_state)
            Coordinates followed by momenta.
        h : float
            Step size.
        parameters : dict of str to float, optional
            Parameter values that differ from those of the model.

        Returns
        -------
        ndarray of shape () or (n_rows,)
            Rate of the energy.

        Raises
        ------
        InputError
            If the model has no Hamiltonian.
        """
        if not isinstance(self.model, Hamiltonian):
            raise InputError("the rate of the energy needs a System or a Hamiltonian")
        rate = ca.dot(ca.gradient(self.model.H, self.state), self.expression(float(h)))
        return self._values(rate, state, parameters).reshape(np.shape(state)[:-1])

    def drift(self, run: Result) -> float:
        """Return the predicted change of the energy over a run with equal steps of the scheme, in joules.

        The rate of the energy is integrated over the stored states by Simpson's rule.

        Parameters
        ----------
        run : Result
            Run that stores q and p.

        Returns
        -------
        float
            Predicted change of the energy.

        Raises
        ------
        InputError
            If the run has another scheme or unequal steps.
        """
        if run.info.scheme != self.scheme or run.info.control:
            raise InputError(
                f"the modified equation is that of equal steps of '{self.scheme}', not of '{run.info.scheme}'"
            )
        from scipy.integrate import simpson  # slow import

        rates = self.energy_rate(np.hstack([run.q, run.p]), run.info.h, run.info.parameters)
        return float(simpson(rates, x=run.t))

    def _values(self, expression: Expr, state: ArrayLike, parameters: Mapping[str, ArrayLike] | None) -> np.ndarray:
        states = np.atleast_2d(np.asarray(state, dtype=float))
        if states.shape[1] != self.state.numel():
            raise InputError(f"state must have {self.state.numel()} entries, got the shape {np.shape(state)}")
        # entries of the state are unpacked: q and p of a Hamiltonian are symbols of their own
        function = ca.Function("f", [self.state, self.model.view.k], [ca.densify(expression)])
        k = self.model.parameter_vector(parameters or {})
        return np.array(function.map(len(states))(states.T, np.repeat(k[:, None], len(states), axis=1))).T


@explain_call_errors
def modified_equation(
    model: System | Hamiltonian | DescriptorModel | Problem, scheme: str | Scheme, order: int = 4
) -> ModifiedEquation:
    """Return the modified equation of a Runge-Kutta method, by B-series over rooted trees, up to a power of h.

    Parameters
    ----------
    model : System, Hamiltonian, FirstOrder, Nambu or Problem
        Model, or problem with a model, without constraints, algebraic variables and time.
    scheme : str or Scheme
        Runge-Kutta method, such as `gauss-2`, `heun` or `implicit-midpoint`, a partitioned one on a mechanical model,
        such as `lobatto-iiia-iiib-3`, or a composition of one.
    order : int, default 4
        Largest power of h, at most 8.

    Returns
    -------
    ModifiedEquation
        Terms as expressions, with methods that evaluate them and the rate of the energy.

    Raises
    ------
    InputError
        If the scheme is no Runge-Kutta method, or the model depends on time or has constraints.

    Examples
    --------
    >>> import livens as lv
    >>> swing = lv.Hamiltonian("q", kinetic=lambda p: p[0] ** 2 / 2, potential=lambda q: q[0] ** 2 / 2)
    >>> heun = modified_equation(swing, "heun", order=3)
    >>> round(float(heun.energy_rate([1.0, 0.0], 0.1) / 0.1**3), 12)  # h^3/8, times twice the energy
    0.125
    """
    order = check_integer("order", order, 0, _MAX_POWER)
    model = model.model if isinstance(model, Problem) else model
    method = schemes.get(scheme)
    schemes.check_compatible(method, model)
    methods = runge_kutta_methods(method)
    if methods is None:
        raise InputError(
            f"scheme '{method.name}' is no Runge-Kutta method: take gauss-<s>, heun, implicit-midpoint and the like; "
            "modified_hamiltonian has splittings into kicks and drifts"
        )
    is_phase = "phase space" in model.formulations
    if len(methods) > 1 and not is_phase:
        raise InputError("the modified equation of a partitioned method needs a mechanical model")
    if is_phase:
        phase = as_hamiltonian(model)
        equations: Hamiltonian | DescriptorModel = phase
        state, t = ca.SX(ca.vertcat(phase.q, phase.p)), phase.t
    else:
        assert isinstance(model, DescriptorModel)
        if not model.is_ode:
            raise InputError("the model has algebraic variables: a modified equation needs an ODE")
        equations, state, t = model, model.descriptor.x, model.descriptor.t
    field = VectorField(equations, equations.view.k)(t, state)
    if ca.depends_on(field, t):
        raise InputError("the model depends on time: a modified equation needs an autonomous model")
    differentials = ElementaryDifferentials(state, equations.view.k, field, len(methods))
    coefficients, terms = ModifiedCoefficients(methods), []
    for power in range(order + 1):
        term = ca.SX.zeros(state.numel())
        for tree in coloured_trees(power + 1, len(methods)):
            if coefficient := coefficients.of_equation(tree):
                term += coefficient / tree.symmetry * differentials.of_field(tree)
        terms.append(term)
    return ModifiedEquation(equations, method.name, state, tuple(terms))


def hamiltonian_terms(phase: Hamiltonian, methods: Methods, order: int) -> tuple[Expr, ...]:
    """Return the terms of the modified Hamiltonian of a symplectic method, up to a power of h.

    The rootings of a free tree with n vertices have elementary Hamiltonians that are equal up to the sign of b; the sum
    over all rooted trees therefore counts each n times.

    Parameters
    ----------
    phase : Hamiltonian
        Model in coordinates and momenta.
    methods : tuple of (array, array)
        Runge-Kutta matrix and weights of each part.
    order : int
        Largest power of h.

    Returns
    -------
    tuple of casadi.SX
        Terms H_0, H_1, ... in the order of their powers of h.
    """
    state, n_parts = ca.SX(ca.vertcat(phase.q, phase.p)), len(methods)
    field = ca.vertcat(ca.gradient(phase.H, phase.p), -ca.gradient(phase.H, phase.q))
    differentials = ElementaryDifferentials(state, phase.view.k, field, n_parts, phase.H)
    coefficients, terms = ModifiedCoefficients(methods), []
    for power in range(order + 1):
        term = ca.SX(0)
        # the coefficient does not depend on the colour of the root
        for tree in (tree for tree in coloured_trees(power + 1, n_parts) if tree.colour == 0):
            if coefficient := coefficients.of_equation(tree):
                term += coefficient / (tree.symmetry * tree.n_vertices) * differentials.of_hamiltonian(tree)
        terms.append(term)
    return tuple(terms)


class ElementaryDifferentials:
    """Elementary differentials ``F(tau) = f^(m)(F(tau_1), ..., F(tau_m))`` of a vector field, as expressions.

    Parameters
    ----------
    state : casadi.SX
        State y; with two parts the first half is one of them.
    k : casadi.SX
        Parameters.
    field : casadi.SX
        Vector field f.
    n_parts : int
        Number of parts.
    H : casadi.SX, optional
        Hamiltonian, for elementary Hamiltonians.
    """

    def __init__(self, state: Expr, k: Expr, field: Expr, n_parts: int, H: Expr | None = None) -> None:
        self.state, self.k, n = state, k, int(state.numel())
        parts = np.arange(n) * n_parts // n
        fields = [ca.DM((parts == part).astype(float)) * field for part in range(n_parts)]
        self._expressions = dict(enumerate(fields)) | ({-1: H} if H is not None else {})
        self._derivatives: dict[tuple[int, int], ca.Function] = {}
        self._values: dict[tuple[int, tuple[ColouredTree, ...]], Expr] = {}

    def of_field(self, tree: ColouredTree) -> Expr:
        """Return F(tau), which is zero outside the part of the root."""
        return self._value(tree.colour, tree.branches)

    def of_hamiltonian(self, tree: ColouredTree) -> Expr:
        """Return the elementary Hamiltonian ``H^(m)(F(tau_1), ..., F(tau_m))``."""
        return self._value(-1, tree.branches)

    def _value(self, index: int, branches: tuple[ColouredTree, ...]) -> Expr:
        key = index, branches
        if key not in self._values:
            directions = [self.of_field(branch) for branch in branches]
            self._values[key] = self._derivative(index, len(branches))(self.state, self.k, *directions)
        return self._values[key]

    def _derivative(self, index: int, count: int) -> ca.Function:
        """Return the derivative of one expression in `count` constant directions."""
        if (index, count) not in self._derivatives:
            directions = [ca.SX.sym(f"d{i}", self.state.numel()) for i in range(count)]
            value = ca.SX(self._expressions[index])
            for direction in directions:
                value = ca.jtimes(value, self.state, direction)
            self._derivatives[index, count] = ca.Function("d", [self.state, self.k, *directions], [value])
        return self._derivatives[index, count]


def runge_kutta_methods(scheme: Scheme) -> Methods | None:
    """Return the Runge-Kutta matrices and weights of a scheme, one or two; None if it is no such method."""
    if isinstance(scheme, Composition):
        base = runge_kutta_methods(scheme.base)
        return None if base is None else tuple(_concatenated(A, b, scheme.weights) for A, b in base)
    pair, tableau = getattr(scheme, "pair", None), getattr(scheme, "tableau", None)
    if isinstance(pair, PartitionedTableau):
        return tuple((np.asarray(part.A), np.asarray(part.b)) for part in (pair.q, pair.p))
    if isinstance(tableau, Tableau):
        return ((np.asarray(tableau.A), np.asarray(tableau.b)),)
    if isinstance(scheme, DiagonallyImplicitRK):
        s = len(scheme.b)
        A = np.array([[*row, *[0.0] * (s - len(row))] for row in scheme.A])
        return ((A, np.array(scheme.b)),)
    if isinstance(scheme, Variational):
        weights = np.ones(1)
        methods = tuple((np.array([[a]]), weights) for a in (scheme.alpha, 1 - scheme.alpha))
        return methods[:1] if scheme.symmetric else methods
    return None


def _concatenated(A: np.ndarray, b: np.ndarray, weights: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return the method of several steps in succession, with weights that add up to one."""
    factors, s = np.asarray(weights, dtype=float), len(b)
    matrix = np.kron(np.diag(factors), A)
    for i in range(1, len(factors)):
        matrix[i * s : (i + 1) * s, : i * s] = np.kron(factors[:i], b)
    return matrix, np.kron(factors, b)
