"""Scalings by stiffness: steps follow the frequency of the motion (S003 paper II, 3.2; paper V, 5.1)."""

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

#: Where a norm vanishes it has no derivative; this bound for its square keeps 0/0 out.
_TINY = 1e-300
#: A contact sets in over no less than this part of the way of the longest step.
_SEEN = 0.25


@dataclass(frozen=True)
class Stiffness(Scaling):
    limit: float
    smooth: float | None
    simplified: bool

    def expression(self, model: Any, unit: Any = None) -> Any:
        """Of q alone; of velocities too where the `unit` of fictive time is given, see `of_system`."""
        if not model.separable or model.inverse_mass is None:
            raise InputError(f"the scaling {self} needs a Hamiltonian with a constant mass matrix")
        matrix = ca.hessian(_without_contacts(model), model.q)[0]
        for gap, size in self._contacts(model, unit):
            # S003 paper II, eq. 28; simplified, a contact is as stiff in all directions of the coordinates it touches
            direction = ca.gradient(gap, model.q)
            shape = ca.diag(ca.SX.ones(direction.sparsity())) if self.simplified else direction @ direction.T
            matrix += size * shape
        rates = model.inverse_mass @ (ca.diag(ca.diag(matrix)) if self.simplified else matrix)
        norm = ca.fabs(rates) if model.n == 1 else ca.sqrt(ca.fmax(ca.sumsqr(rates), _TINY))
        return (norm + self.limit) ** -0.5

    def _length(self, rate: Any, unit: Any) -> Any:
        """Over which a contact sets in whose gap changes at this rate.

        A step that jumps over it would meet the whole stiffness unprepared, with a force that is anything; so it grows
        with the way of the longest step. The rate is squared: forwards and backwards in time it is the same.
        """
        assert self.smooth is not None
        if unit is None or not self.limit:
            return self.smooth
        return m.sqrt(self.smooth**2 + (_SEEN * unit * rate) ** 2 / self.limit)

    def _contacts(self, model: Hamiltonian, unit: Any) -> Iterator[tuple[Any, Any]]:
        """Gap and stiffness of every contact."""
        for element, q, k in _elements(model):
            if not hasattr(element, "gaps"):
                continue
            if self.smooth is None:
                raise InputError(f"the scaling {self} needs a length `smooth` for contacts, such as '{element.name}'")
            for gap in element.gaps(m.symbols(q), k):
                rate = m.Scalar(ca.SX(ca.jtimes(m.expression(gap), model.q, model.v)))
                yield m.expression(gap), m.expression(element.stiffness(gap, k, self._length(rate, unit)))

    def of_system(self, system: Any, q: Any, v: Any, k: Any, mobility: Any, unit: Any) -> Any:
        """The same of a system that is taken element by element: each contact with the mass that it moves.

        Its square is the sum of the squared frequencies ``k_i/m_i`` of all contacts; what is not a contact is left to
        the part of a scheme that is implicit. Steps of a `unit` of fictive time see a contact before they jump over it.
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
    """``(|M^-1 V''| + limit)^(-1/2)``: steps follow the frequency of the motion (S003 paper II, 3.2).

    The norm is that of Frobenius; steps are never longer than ``eps limit^(-1/2)``. A contact sets in at once, which
    would make steps jump: `smooth` is the length it takes to set in here (only here, not in the forces). Schemes whose
    scaling may see velocities (`semi-explicit`) take no less than a quarter of the way of the longest step. If
    `simplified`, second derivatives beside the diagonal, and the directions of contacts, are left out.

    >>> str(stiffness(1.0))
    'stiffness(1)'
    """
    length = None if smooth is None else positive("smooth", smooth, text=False)
    return Stiffness(limit_of(limit), length, simplified)


def _elements(model: Hamiltonian) -> Iterator[tuple[Any, Any, Namespace]]:
    """The elements of the system a Hamiltonian was made of, with their coordinates and parameters."""
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
    """The potential energy of everything else."""
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
    """The stiffness of the expensive forces along the motion, from values a scheme has anyway (paper V, eq. 15).

    No function of the state alone: it depends on the last step and on where in the step the scheme evaluates A.
    """

    limit: float

    def expression(self, model: Hamiltonian, h: Any, alpha: Any) -> Any:
        """``s = (|a(q + alpha h v, v, t + alpha h) - a(q, v, t)| / (alpha h |v|) + limit)^(-1/2)``, of q, v, t and k.

        a are accelerations ``M^-1 A``. At rest nothing can be told: then only the limit counts.
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
    """The estimate (15) of S003 paper V, for schemes that evaluate expensive forces ahead of the state.

    >>> str(stiffness_estimate(1.0))
    'stiffness_estimate(1)'
    """
    return StiffnessEstimate(limit_of(limit, least=True))
