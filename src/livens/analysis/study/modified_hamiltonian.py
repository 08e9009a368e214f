"""Modified Hamiltonians of symplectic schemes, and modified matrices of linear systems, ``log R(hA)/h``.

A splitting is a product of exact flows of parts of H. By the formula of Baker, Campbell and Hausdorff it is the exact
flow of a modified Hamiltonian ``H + h H_1 + h^2 H_2 + ...`` (Hairer, Lubich and Wanner 2006, IX.4). Its terms are
nested Poisson brackets of the parts. The terms of Runge-Kutta methods are elementary Hamiltonians, see
`livens.analysis.study.modified_equation`. `livens.analysis.study.backward_error` measures the modified energy of a run.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens import schemes
from livens.analysis.study.modified_equation import hamiltonian_terms, runge_kutta_methods
from livens.analysis.study.structure_defects import step_derivative
from livens.errors import InputError, explain_call_errors
from livens.models.descriptor import DescriptorModel
from livens.models.hamiltonian.model import Hamiltonian
from livens.models.problem import Problem
from livens.models.system import System
from livens.results.result import Result
from livens.schemes.core.scheme import Scheme
from livens.schemes.discretization.phase_space_map import as_hamiltonian
from livens.schemes.splitting.composition import Composition
from livens.types import ArrayLike, Expr
from livens.validation import check_integer, check_positive

#: Parts of the splittings in the order of their flows: drifts with T and kicks with V, and their fractions of h.
_SPLITTINGS: dict[str, tuple[tuple[str, float], ...]] = {
    "symplectic-euler": (("V", 1.0), ("T", 1.0)),
    "variational:0": (("V", 1.0), ("T", 1.0)),
    "variational:1": (("T", 1.0), ("V", 1.0)),
    "stormer-verlet": (("V", 0.5), ("T", 1.0), ("V", 0.5)),
    "variational-sym:0": (("V", 0.5), ("T", 1.0), ("V", 0.5)),
    "position-verlet": (("T", 0.5), ("V", 1.0), ("T", 0.5)),
    "strang": (("T", 0.5), ("V", 1.0), ("T", 0.5)),
}
#: Largest power of h of the series: its term has 2^(power + 1) brackets.
_MAX_POWER = 8
#: Distance from the negative real axis, relative to the modulus, below which a logarithm is not defined.
_BRANCH_DISTANCE = 1e-6

#: Element of the free associative algebra: coefficients of monomials of parts.
_Monomials = dict[tuple[str, ...], float]


@dataclass(frozen=True, eq=False)
class ModifiedHamiltonian:
    """Truncated modified Hamiltonian ``sum_j h^j H_j`` of a symplectic scheme, with expressions as terms.

    Parameters
    ----------
    model : Hamiltonian
        Model in coordinates and momenta.
    scheme : str
        Name of the scheme.
    terms : tuple of casadi.SX
        Terms H_0, H_1, ... in the order of their powers of h.
    """

    model: Hamiltonian
    scheme: str
    terms: tuple[Expr, ...]

    @property
    def order(self) -> int:
        """Largest power of h."""
        return len(self.terms) - 1

    def expression(self, h: float | Expr) -> Expr:
        """Return the sum of the terms as an expression of ``model.q``, ``model.p`` and ``model.k``.

        Parameters
        ----------
        h : float or casadi.SX
            Step size.

        Returns
        -------
        casadi.SX
            Modified Hamiltonian.
        """
        return sum((term * h**j for j, term in enumerate(self.terms)), ca.SX(0))

    def evaluate(
        self, q: ArrayLike, p: ArrayLike, h: float, parameters: Mapping[str, object] | None = None
    ) -> np.ndarray | float:
        """Return the modified Hamiltonian at states.

        Parameters
        ----------
        q, p : array_like of shape (n,) or (n_states, n)
            Coordinates and momenta.
        h : float
            Step size.
        parameters : dict of str to float, optional
            Parameter values that differ from those of the model.

        Returns
        -------
        float or ndarray of shape (n_states,)
            Modified Hamiltonian, in joules.
        """
        states = np.atleast_2d(np.asarray(q, dtype=float)), np.atleast_2d(np.asarray(p, dtype=float))
        m = self.model
        function = ca.Function("H", [m.q, m.p, m.k], [self.expression(float(h))]).map(len(states[0]))
        k = np.repeat(m.parameter_vector(parameters or {})[:, None], len(states[0]), axis=1)
        values = np.array(function(states[0].T, states[1].T, k)).ravel()
        return values if np.ndim(q) == 2 else float(values[0])

    def along(self, run: Result) -> np.ndarray:
        """Return the modified Hamiltonian at the stored states of a run with equal steps of its scheme.

        Parameters
        ----------
        run : Result
            Run that stores q and p.

        Returns
        -------
        ndarray of shape (n_rows,)
            Modified Hamiltonian, in joules.

        Raises
        ------
        InputError
            If the run has another scheme, unequal steps, or other parameters of its own.
        """
        if run.info.scheme != self.scheme or run.info.control:
            raise InputError(
                f"the modified Hamiltonian is that of equal steps of '{self.scheme}', not of '{run.info.scheme}'"
            )
        return np.asarray(self.evaluate(run.q, run.p, run.info.h, run.info.parameters))


@explain_call_errors
def modified_hamiltonian(
    model: System | Hamiltonian | Problem, scheme: str | Scheme, order: int = 4
) -> ModifiedHamiltonian:
    """Return the modified Hamiltonian of a symplectic scheme, up to a power of h.

    The series is that of Baker, Campbell and Hausdorff for splittings into kicks and drifts, and a B-series over rooted
    trees for symplectic Runge-Kutta methods and partitioned ones.

    Parameters
    ----------
    model : System, Hamiltonian or Problem
        Conservative model, or problem with one, without constraints and time; for splittings ``T(p) + V(q)``.
    scheme : str or Scheme
        Splitting into kicks and drifts, such as `stormer-verlet`, symplectic Runge-Kutta method, such as
        `implicit-midpoint`, `gauss-2` or `lobatto-iiia-iiib-3`, or a composition of one of them.
    order : int, default 4
        Largest power of h, at most 8. The number of terms grows by a factor of two to four with each power.

    Returns
    -------
    ModifiedHamiltonian
        Terms as expressions, with methods that evaluate their sum at states and along runs.

    Raises
    ------
    InputError
        If the scheme has no such series, or the model is not conservative.

    Examples
    --------
    >>> import numpy as np, livens as lv
    >>> pendulum = lv.Hamiltonian("q", kinetic=lambda p: p[0] ** 2 / 2, potential=lambda q: -lv.math.cos(q[0]))
    >>> euler = modified_hamiltonian(pendulum, "symplectic-euler", order=1)
    >>> run = lv.simulate(pendulum, q0=[1.0], p0=[0.0], scheme="symplectic-euler", h=0.05, t_end=50.0)
    >>> bool(np.ptp(euler.along(run)) < 0.05 * np.ptp(run.observe("hamiltonian")))
    True
    """
    order = check_integer("order", order, 0, _MAX_POWER)
    model = model.model if isinstance(model, Problem) else model
    method = schemes.get(scheme)
    schemes.check_compatible(method, model)
    phase = as_hamiltonian(model)
    if ca.depends_on(phase.H, phase.t) or not ca.SX(ca.sparsify(phase.F)).is_zero():
        raise InputError("a modified Hamiltonian needs a conservative model without time")
    flows = _parts_of(method)
    if flows is not None and phase.separable:
        return ModifiedHamiltonian(phase, method.name, _splitting_terms(phase, flows, order))
    methods = runge_kutta_methods(method)
    if methods is not None and method.symplectic:
        return ModifiedHamiltonian(phase, method.name, hamiltonian_terms(phase, methods, order))
    if flows is not None:
        raise InputError(f"the modified Hamiltonian of '{method.name}' needs an energy T(p) + V(q)")
    raise InputError(
        f"scheme '{method.name}' is no splitting into kicks and drifts and no symplectic Runge-Kutta method: take "
        f"{', '.join(_SPLITTINGS)}, implicit-midpoint, gauss-<s>, lobatto-iiia-iiib-<s>, or a composition of one. "
        "modified_equation has the series of other Runge-Kutta methods, and modified_energy measures a run with any "
        "scheme"
    )


def _splitting_terms(phase: Hamiltonian, flows: Sequence[tuple[str, float]], order: int) -> tuple[Expr, ...]:
    """Return the terms of the BCH series of a product of flows of T and V, up to a power of h."""
    terms = [ca.SX(0)] * (order + 1)
    brackets: dict[tuple[str, ...], Any] = {("T",): phase.T, ("V",): phase.V}
    for monomial, coefficient in _logarithm(flows, order + 1).items():
        bracket = _nested_bracket(monomial, brackets, phase)
        terms[len(monomial) - 1] += coefficient / len(monomial) * bracket  # Dynkin's formula
    return tuple(terms)


@explain_call_errors
def modified_matrix(
    model: System | Hamiltonian | DescriptorModel,
    scheme: str | Scheme,
    h: float,
    *,
    parameters: Mapping[str, object] | None = None,
) -> np.ndarray:
    """Return the modified matrix ``log R(hA)/h`` of a linear system ``z' = A z``, ``z = (q, p)`` or ``z = x``.

    A step with h is the exact flow of the modified matrix over h. Real parts of its eigenvalues are the rates at which
    motions grow or decay, and imaginary parts are the frequencies of the numerical motion.

    Parameters
    ----------
    model : System, Hamiltonian or FirstOrder
        Linear model without time, constraints and algebraic variables.
    scheme : str or Scheme
        Integration scheme.
    h : float
        Step size.
    parameters : dict of str to float, optional
        Parameter values that differ from those of the model.

    Returns
    -------
    ndarray of shape (n, n)
        Modified matrix.

    Raises
    ------
    InputError
        If the step is not a linear map, or its matrix has no real logarithm because the step is too long.

    Examples
    --------
    >>> import numpy as np, livens as lv
    >>> swing = lv.Hamiltonian("q", kinetic=lambda p: p[0] ** 2 / 2, potential=lambda q: q[0] ** 2 / 2)
    >>> rates = np.linalg.eigvals(modified_matrix(swing, "heun", 0.1)).real
    >>> np.round(rates / 0.1**3, 3)  # grows with h^3/8
    array([0.125, 0.125])
    """
    from scipy.linalg import logm  # slow import

    if not isinstance(model, System | Hamiltonian | DescriptorModel):
        raise InputError(f"model must be a System, a Hamiltonian or a FirstOrder, got {type(model).__name__}")
    h = check_positive("h", h)
    n = len(model.coordinates)
    # a nonlinear step has another derivative at another state
    points = np.random.default_rng(3).uniform(0.2, 0.8, (2, 2 * n))
    matrices = [step_derivative(model, scheme, point, h, parameters) for point in points]
    matrix = matrices[0]
    if not np.allclose(matrix, matrices[1], rtol=1e-9, atol=1e-12):
        raise InputError("the step is not a linear map: a modified matrix needs a linear model without time")
    values = np.linalg.eigvals(matrix)
    if np.any((values.real < 0) & (np.abs(values.imag) < _BRANCH_DISTANCE * np.abs(values))):
        raise InputError(f"the step matrix has no real logarithm: h = {h:g} is too long for the fastest motion")
    return np.asarray(np.real(logm(matrix)) / h)


def _parts_of(scheme: Scheme) -> list[tuple[str, float]] | None:
    """Return the flows of a splitting in their order, as parts and fractions of h; None for other schemes."""
    if isinstance(scheme, Composition):
        base = _parts_of(scheme.base)
        return None if base is None else [(part, w * fraction) for w in scheme.weights for part, fraction in base]
    return list(_SPLITTINGS[scheme.name]) if scheme.name in _SPLITTINGS else None


def _product(a: _Monomials, b: _Monomials, degree: int) -> _Monomials:
    """Return the product of two sums of monomials, truncated at a degree."""
    monomials: _Monomials = {}
    for (first, x), (second, y) in itertools.product(a.items(), b.items()):
        if len(first) + len(second) <= degree:
            monomials[first + second] = monomials.get(first + second, 0.0) + x * y
    return monomials


def _logarithm(flows: Sequence[tuple[str, float]], degree: int) -> _Monomials:
    """Return ``log(exp(w_1 X_1) exp(w_2 X_2) ...)`` as a sum of monomials, truncated at a degree."""
    product: _Monomials = {(): 1.0}
    for part, weight in flows:
        factor, coefficient = {}, 1.0
        for power in range(degree + 1):
            factor[(part,) * power] = coefficient
            coefficient *= weight / (power + 1)
        product = _product(product, factor, degree)
    difference = {monomial: value for monomial, value in product.items() if monomial}
    logarithm: _Monomials = {}
    power_of_difference: _Monomials = {(): 1.0}
    for power in range(1, degree + 1):
        power_of_difference = _product(power_of_difference, difference, degree)
        for monomial, value in power_of_difference.items():
            logarithm[monomial] = logarithm.get(monomial, 0.0) - (-1) ** power * value / power
    return {monomial: value for monomial, value in logarithm.items() if abs(value) > 1e-15}


def _nested_bracket(monomial: tuple[str, ...], brackets: dict[tuple[str, ...], Any], phase: Hamiltonian) -> Any:
    """Return the Hamiltonian of the left-normed commutator of Lie derivatives, ``[L_A, L_B] = L_{B, A}``."""
    if monomial not in brackets:
        inner = _nested_bracket(monomial[:-1], brackets, phase)
        brackets[monomial] = _poisson_bracket(brackets[monomial[-1:]], inner, phase)
    return brackets[monomial]


def _poisson_bracket(f: Expr, g: Expr, phase: Hamiltonian) -> Expr:
    """Return ``{f, g} = f_q . g_p - f_p . g_q``."""
    f_q, f_p, g_q, g_p = (ca.gradient(function, symbol) for function in (f, g) for symbol in (phase.q, phase.p))
    return ca.dot(f_q, g_p) - ca.dot(f_p, g_q)
