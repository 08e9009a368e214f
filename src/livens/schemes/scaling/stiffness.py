"""Scaling functions of the stiffness: steps follow the frequency of the motion (S003 paper II, 3.2; paper V, 5.1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import casadi as ca

from livens import math as m
from livens.errors import InputError, ModelError
from livens.expressions.numbers import positive
from livens.expressions.parameters import Namespace
from livens.models.hamiltonian.model import Hamiltonian
from livens.schemes.scaling.base import Scaling, limit_of

#: Lower bound of squared norms, which prevents 0/0 in derivatives at zero.
_TINY = 1e-300
#: Smoothing length of a contact, as a fraction of the displacement in the longest step.
_SEEN = 0.25


@dataclass(frozen=True)
class Stiffness(Scaling):
    limit: float
    smooth: float | None
    simplified: bool

    def expression(self, model: Any, unit: Any = None) -> Any:
        """Return g as a function of q; with the `unit` of fictive time also of velocities, see `for_system`."""
        if not model.separable or model.inverse_mass is None:
            raise InputError(f"the scaling {self} needs a Hamiltonian with a constant mass matrix")
        matrix = ca.hessian(_without_contacts(model), model.q)[0]
        for gap, size in self._contacts(model, unit):
            # S003 paper II, eq. 28; `diagonal`: equal stiffness in all coordinates of the contact
            direction = ca.gradient(gap, model.q)
            shape = ca.diag(ca.SX.ones(direction.sparsity())) if self.simplified else direction @ direction.T
            matrix += size * shape
        rates = model.inverse_mass @ (ca.diag(ca.diag(matrix)) if self.simplified else matrix)
        norm = ca.fabs(rates) if model.n == 1 else ca.sqrt(ca.fmax(ca.sumsqr(rates), _TINY))
        return (norm + self.limit) ** -0.5

    def _length(self, rate: Any, unit: Any) -> Any:
        """Return the smoothing length of a contact whose gap changes at this rate.

        A step that skips the smoothing zone would meet the full stiffness with an arbitrary force. The length therefore
        increases with the displacement in the longest step. The rate is squared, which makes it time-symmetric.
        """
        assert self.smooth is not None
        if unit is None or not self.limit:
            return self.smooth
        return m.sqrt(self.smooth**2 + (_SEEN * unit * rate) ** 2 / self.limit)

    def _contacts(self, model: Hamiltonian, unit: Any) -> Iterator[tuple[Any, Any]]:
        """Yield gap and stiffness of every contact."""
        for element, q, k in _elements(model):
            if not hasattr(element, "gaps"):
                continue
            if self.smooth is None:
                raise InputError(f"the scaling {self} needs a length `smooth` for contacts, such as '{element.name}'")
            for gap in element.gaps(m.symbols(q), k):
                rate = m.Scalar(ca.SX(ca.jtimes(m.expression(gap), model.q, model.v)))
                yield m.expression(gap), m.expression(element.stiffness(gap, k, self._length(rate, unit)))

    def of_system(self, system: Any, q: Any, v: Any, k: Any, mobility: Any, unit: Any) -> Any:
        """Return g of a System in element-wise form, with the effective mass of each contact.

        The stiffness is the root of the sum of the squares of ``k_i/m_i`` over all contacts; other forces are left to
        the implicit part of the scheme. The smoothing length depends on the `unit` of fictive time, see
        `_smoothing_length`.
        """
        total = ca.SX(0)
        for element, index, where in zip(system.elements, system.indices, system.parameter_indices, strict=True):
            if not hasattr(element, "gaps"):
                continue
            if self.smooth is None:
                raise InputError(f"the scaling {self} needs a length `smooth` for contacts, such as '{element.name}'")
            own, local, size = ca.SX.sym("q", len(index)), ca.SX.sym("k", len(where)), system.shared.size
            speeds, step = ca.SX.sym("v", len(index)), ca.SX.sym("unit")
            named = system.shared.symbols(local[:size]) | element.parameters.symbols(local[size:]) | element.constants
            for gap in element.gaps(m.symbols(own), Namespace(named)):
                slope = ca.densify(ca.gradient(m.expression(gap), own))
                length = self._length(m.Scalar(ca.dot(slope, speeds)), m.Scalar(step))
                hardness = m.expression(element.stiffness(gap, Namespace(named), length))
                both = ca.Function("contact", [own, speeds, local, step], [ca.SX(hardness), slope])
                value, direction = both(q[list(index)], v[list(index)], k[list(where)], unit)
                force = ca.SX.zeros(system.n)
                force[list(index)] = direction
                total += (value * mobility(force)) ** 2
        return (ca.sqrt(ca.fmax(total, _TINY)) + self.limit) ** -0.5

    def __str__(self) -> str:
        smooth = "" if self.smooth is None else f", smooth={self.smooth:g}"
        return f"stiffness({self.limit:g}{smooth}{', simplified=True' if self.simplified else ''})"


def stiffness(limit: float, smooth: float | None = None, simplified: bool = False) -> Scaling:
    """Return the scaling function ``(|M^-1 V''| + min_omega2)^(-1/2)`` (S003 paper II, 3.2).

    Steps follow the frequency of the motion. The norm is the Frobenius norm; steps in time are at most
    ``eps min_omega2^(-1/2)``.

    Parameters
    ----------
    min_omega2 : float
        Lower bound of the squared angular frequency, in 1/s^2.
    smoothing_length : float, optional
        Length over which the stiffness of a contact increases, in metres. It applies to the scaling function only, not
        to the forces. Required for models with contacts. Schemes whose scaling may depend on velocities
        (`semi-explicit`) use at least a quarter of the displacement in the longest step.
    diagonal : bool, default False
        Neglect off-diagonal second derivatives and the directions of contacts.

    Returns
    -------
    Scaling
        Scaling function.

    Examples
    --------
    >>> str(stiffness(1.0))
    'stiffness(1)'
    """
    length = None if smooth is None else positive("smooth", smooth, text=False)
    return Stiffness(limit_of(limit), length, simplified)


def _elements(model: Hamiltonian) -> Iterator[tuple[Any, Any, Namespace]]:
    """Yield the elements of the System of a Hamiltonian, with their coordinates and parameters."""
    system = model.source
    if system is None:
        return
    for element, index, where in zip(system.elements, system.indices, system.parameter_indices, strict=True):
        k = model.k[list(where)]
        size = system.shared.size
        yield (
            element,
            model.q[list(index)],
            Namespace(system.shared.symbols(k[:size]) | element.parameters.symbols(k[size:]) | element.constants),
        )


def _without_contacts(model: Hamiltonian) -> Any:
    """Return the potential energy of all elements that are not contacts."""
    system = model.source
    if system is None or not any(hasattr(element, "gaps") for element in system.elements):
        return model.V
    V = ca.SX(0)
    for element, local, index, where in zip(
        system.elements, system.models, system.indices, system.parameter_indices, strict=True
    ):
        if not hasattr(element, "gaps"):
            f = ca.Function("V", [local.q, local.t, local.k], [local.V])
            V += f(model.q[list(index)], model.t, model.k[list(where)])
    return V


@dataclass(frozen=True)
class StiffnessEstimate:
    """Estimate of the stiffness of expensive forces along the trajectory (S003 paper V, eq. 15).

    It uses force values of the scheme. It is not a function of the state only, but depends on the last step and on the
    evaluation point of the expensive forces.

    Parameters
    ----------
    min_omega2 : float
        Lower bound of the squared angular frequency, in 1/s^2.
    """

    limit: float

    def expression(self, model: Hamiltonian, h: Any, alpha: Any) -> Any:
        """Return ``s = (|a(q + alpha h v, v, t + alpha h) - a(q, v, t)| / (alpha h |v|) + min_omega2)^(-1/2)``.

        a are the accelerations ``M^-1 A``. At rest, s is determined by `min_omega2` only.

        Parameters
        ----------
        model : Hamiltonian
            Model with a constant mass matrix.
        h : casadi.SX
            Size of the last step, in seconds.
        alpha : float
            Evaluation point of the expensive forces, in units of h.

        Returns
        -------
        casadi.SX
            Expression of q, v, t and k.

        Raises
        ------
        ModelError
            If the mass matrix is not constant.
        """
        if model.inverse_mass is None:
            raise ModelError(f"{self} needs a Hamiltonian with a constant mass matrix")
        a = ca.Function("a", [model.q, model.v, model.t, model.k], [model.inverse_mass @ model.A])
        ahead = a(model.q + alpha * h * model.v, model.v, model.t + alpha * h, model.k)
        change = ca.sumsqr(ahead - a(model.q, model.v, model.t, model.k))
        way = ca.fmax(ca.sumsqr(alpha * h * model.v), _TINY)
        return (ca.sqrt(change / way) + self.limit) ** -0.5

    def __str__(self) -> str:
        return f"stiffness_estimate({self.limit:g})"


def stiffness_estimate(limit: float) -> StiffnessEstimate:
    """Return the stiffness estimate (15) of S003 paper V, for schemes with an evaluation point ahead of the state.

    Parameters
    ----------
    min_omega2 : float
        Positive lower bound of the squared angular frequency, in 1/s^2.

    Returns
    -------
    StiffnessEstimate
        Scaling for semi-explicit schemes.

    Examples
    --------
    >>> str(stiffness_estimate(1.0))
    'stiffness_estimate(1)'
    """
    return StiffnessEstimate(limit_of(limit, least=True))
