"""Scaling functions of the stiffness: steps follow the frequency of the motion.

See Modin 2009, paper II, 3.2; paper V, 5.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import casadi as ca

from livens import math as m
from livens.errors import InputError, ModelError
from livens.expressions.parameters import ParameterNamespace
from livens.models.hamiltonian.model import Hamiltonian
from livens.schemes.scaling.base import Scaling, StepMeans, check_limit
from livens.types import Expr, ScalarLike
from livens.validation import check_positive

#: Lower bound of squared norms, which prevents 0/0 in derivatives at zero.
_TINY_SQUARE = 1e-300
#: Ratio of a velocity to its increment in a step below which the system is at rest.
_AT_REST = 1e-2
#: Smoothing length of a contact, as a fraction of the displacement in the longest step.
_LOOKAHEAD = 0.25


@dataclass(frozen=True)
class Stiffness(Scaling):
    factory: ClassVar[str] = "stiffness"
    min_omega2: float
    smoothing_length: float | None
    diagonal: bool

    def expression(self, model: Any, unit: Any = None) -> Expr:
        """Return g as a function of q; with the `unit` of fictive time also of velocities, see `for_system`."""
        if not model.separable or model.inverse_mass is None:
            raise InputError(f"the scaling {self} needs a Hamiltonian with a constant mass matrix")
        matrix = ca.hessian(_noncontact_potential(model), model.q)[0]
        for gap, contact_stiffness in self._contacts(model, unit):
            # Modin 2009, paper II, eq. 28; `diagonal`: equal stiffness in all coordinates that the gap depends on
            direction = ca.jacobian(gap, model.q).T
            shape = ca.diag(ca.SX.ones(direction.sparsity())) if self.diagonal else direction @ direction.T
            matrix += contact_stiffness * shape
        rates = model.inverse_mass @ (ca.diag(ca.diag(matrix)) if self.diagonal else matrix)
        norm = ca.fabs(rates) if model.n == 1 else ca.sqrt(ca.fmax(ca.sumsqr(rates), _TINY_SQUARE))
        return (norm + self.min_omega2) ** -0.5

    def _smoothing_length(self, rate: ScalarLike, unit: ScalarLike | None) -> ScalarLike:
        """Return the smoothing length of a contact whose gap changes at this rate.

        A step that skips the smoothing zone would meet the full stiffness with an arbitrary force. The length therefore
        increases with the displacement in the longest step. The rate is squared, which makes it time-symmetric.
        """
        assert self.smoothing_length is not None
        if unit is None or not self.min_omega2:
            return self.smoothing_length
        return m.sqrt(self.smoothing_length**2 + (_LOOKAHEAD * unit * rate) ** 2 / self.min_omega2)

    def _contacts(self, model: Hamiltonian, unit: Any) -> Iterator[tuple[Any, Any]]:
        """Yield gap and stiffness of every contact."""
        for element, q, k in _elements_with_symbols(model):
            if not hasattr(element, "gaps"):
                continue
            if self.smoothing_length is None:
                raise InputError(
                    f"the scaling {self} needs a `smoothing_length` for contacts, such as '{element.name}'"
                )
            for gap in element.gaps(m.from_casadi(q), k):
                rate = m.Scalar(ca.SX(ca.jtimes(m.to_casadi(gap), model.q, model.v)))
                yield m.to_casadi(gap), m.to_casadi(element.stiffness(gap, k, self._smoothing_length(rate, unit)))

    def for_system(self, system: Any, means: StepMeans) -> Expr:
        """Return g of a System in element-wise form, with the effective mass of each contact.

        The stiffness is the root of the sum of the squares of ``k_i/m_i`` over all contacts; other forces are left to
        the implicit part of the scheme. The smoothing length depends on the unit of fictive time, see
        `_smoothing_length`.
        """
        q, v, k = means.q, means.v, means.k
        total = ca.SX(0)
        for element, index, parameter_dofs in zip(
            system.elements, system.element_dofs, system.element_parameters, strict=True
        ):
            if not hasattr(element, "gaps"):
                continue
            if self.smoothing_length is None:
                raise InputError(
                    f"the scaling {self} needs a `smoothing_length` for contacts, such as '{element.name}'"
                )
            q_local, k_local = ca.SX.sym("q", len(index)), ca.SX.sym("k", len(parameter_dofs))
            size = system.model_parameters.size
            v_local, step = ca.SX.sym("v", len(index)), ca.SX.sym("unit")
            named = (
                system.model_parameters.unpack_symbols(k_local[:size])
                | element.parameters.unpack_symbols(k_local[size:])
                | element.constants
            )
            for gap in element.gaps(m.from_casadi(q_local), ParameterNamespace(named)):
                gap_gradient = ca.densify(ca.gradient(m.to_casadi(gap), q_local))
                length = self._smoothing_length(m.Scalar(ca.dot(gap_gradient, v_local)), m.Scalar(step))
                contact_stiffness = m.to_casadi(element.stiffness(gap, ParameterNamespace(named), length))
                contact_function = ca.Function(
                    "contact", [q_local, v_local, k_local, step], [ca.SX(contact_stiffness), gap_gradient]
                )
                value, direction = contact_function(q[list(index)], v[list(index)], k[list(parameter_dofs)], means.unit)
                force = ca.SX.zeros(system.n)
                force[list(index)] = direction
                total += (value * means.inverse_effective_mass(force)) ** 2
        return (ca.sqrt(ca.fmax(total, _TINY_SQUARE)) + self.min_omega2) ** -0.5

    def __str__(self) -> str:
        suffix = "" if self.smoothing_length is None else f", smoothing_length={self.smoothing_length:g}"
        return f"stiffness({self.min_omega2:g}{suffix}{', diagonal=True' if self.diagonal else ''})"


def stiffness(min_omega2: float, smoothing_length: float | None = None, diagonal: bool = False) -> Scaling:
    """Return the scaling function ``(|M^-1 V''| + min_omega2)^(-1/2)`` (Modin 2009, paper II, 3.2).

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
    checked_length = (
        None if smoothing_length is None else check_positive("smoothing_length", smoothing_length, allow_strings=False)
    )
    return Stiffness(check_limit(min_omega2), checked_length, diagonal)


def _elements_with_symbols(model: Hamiltonian) -> Iterator[tuple[Any, Any, ParameterNamespace]]:
    """Yield the elements of the System of a Hamiltonian, with their coordinates and parameters."""
    system = model.source_system
    if system is None:
        return
    for element, index, parameter_dofs in zip(
        system.elements, system.element_dofs, system.element_parameters, strict=True
    ):
        k = model.k[list(parameter_dofs)]
        size = system.model_parameters.size
        yield (
            element,
            model.q[list(index)],
            ParameterNamespace(
                system.model_parameters.unpack_symbols(k[:size])
                | element.parameters.unpack_symbols(k[size:])
                | element.constants
            ),
        )


def _noncontact_potential(model: Hamiltonian) -> Any:
    """Return the potential energy of all elements that are not contacts."""
    system = model.source_system
    if system is None or not any(hasattr(element, "gaps") for element in system.elements):
        return model.V
    V = ca.SX(0)
    for element, local, index, parameter_dofs in zip(
        system.elements, system.element_types, system.element_dofs, system.element_parameters, strict=True
    ):
        if not hasattr(element, "gaps"):
            f = ca.Function("V", [local.q, local.t, local.k], [local.V])
            V += f(model.q[list(index)], model.t, model.k[list(parameter_dofs)])
    return V


def estimate_velocity(v: Expr, velocity_increment: Any) -> Expr:
    """Return the velocity v along which the stiffness is estimated; at rest that of the accelerated motion.

    Parameters
    ----------
    v : casadi.SX
        Velocity.
    velocity_increment : casadi.SX
        Mean increment of the velocity by the accelerations.

    Returns
    -------
    casadi.SX
        Velocity, unless it is small beside its increment; then the sum of both.
    """
    is_moving = ca.sumsqr(v) > _AT_REST**2 * ca.sumsqr(velocity_increment)
    return ca.if_else(is_moving, v, v + velocity_increment)


@dataclass(frozen=True)
class StiffnessEstimate:
    """Estimate of the stiffness of expensive forces along the trajectory (Modin 2009, paper V, eq. 15).

    It uses force values of the scheme. It is not a function of the state only, but depends on the last step and on the
    evaluation point of the expensive forces.

    Parameters
    ----------
    min_omega2 : float
        Lower bound of the squared angular frequency, in 1/s^2.
    """

    min_omega2: float

    def expression(self, model: Hamiltonian, h: Expr, alpha: Any) -> Expr:
        """Return ``s = (|a(q + d, v, t + alpha h) - a(q, v, t)| / |d| + min_omega2)^(-1/2)``.

        a are the accelerations ``M^-1 A`` and ``d = alpha h v``. At rest, where this does not determine s, d is the
        displacement ``(alpha h)^2 a/2`` of the accelerated motion.

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
        a = ca.Function("a", [model.q, model.v, model.t, model.k], [model.inverse_mass @ model.explicit_force])
        a_here = a(model.q, model.v, model.t, model.k)
        displacement = alpha * h * estimate_velocity(model.v, alpha * h / 2 * a_here)
        increment2 = ca.sumsqr(a(model.q + displacement, model.v, model.t + alpha * h, model.k) - a_here)
        distance2 = ca.fmax(ca.sumsqr(displacement), _TINY_SQUARE)
        return (ca.sqrt(increment2 / distance2) + self.min_omega2) ** -0.5

    def __str__(self) -> str:
        return f"stiffness_estimate({self.min_omega2:g})"


def stiffness_estimate(min_omega2: float) -> StiffnessEstimate:
    """Return the stiffness estimate (15) of Modin 2009, paper V, for evaluation points ahead of the state.

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
    return StiffnessEstimate(check_limit(min_omega2, strictly_positive=True))
