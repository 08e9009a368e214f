"""Base class of discrete gradients, with partitioned forms for functions of several arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import casadi as ca

from livens.expressions.graph.increments import increments
from livens.types import Expr

if TYPE_CHECKING:
    from livens.schemes.discretization.element_scheme import ElementFunctions


class DiscreteGradient:
    """Discrete gradient: a vector ``DG f(x, y)`` for every scalar function f and two points x and y with

    - ``DG f(x, y) . (y - x) = f(y) - f(x)`` to round-off, for all distances of the points (directionality);
    - ``DG f(x, x) = grad f(x)``, without a division of zero by zero (consistency).

    Energy-momentum schemes are parametrized by a discrete gradient. A subclass with a `name` and the method `__call__`
    is registered at its definition and is available by name, as in ``"livens-em:my-gradient"``; it is then constructed
    without arguments. The traits of the discrete gradient determine the traits of the scheme.
    """

    name: str
    #: Order of a scheme with this discrete gradient: 2 if it is symmetric, else 1.
    order: int = 1
    #: True if ``DG f(x, y) = DG f(y, x)``.
    symmetric: bool = False
    #: Momentum maps that a scheme conserves to round-off, if energies and constraints have the symmetry: of "cyclic"
    #: coordinates, which do not occur in them, of "translations", and of "rotations".
    momenta: tuple[str, ...] = ()
    summary: str = "a user-defined discrete gradient"
    source: str = "user-defined"

    registry: ClassVar[dict[str, type[DiscreteGradient]]] = {}

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if "name" in cls.__dict__:
            DiscreteGradient.registry[cls.name] = cls

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), self.name))

    def __repr__(self) -> str:
        return f"<discrete gradient {self.name}>"

    def __call__(self, function: ca.Function, x: Any, w: Any, *others: object) -> Any:
        """Return ``DG f(x, x + w)`` of a scalar function f(x, *others) in its first argument.

        The increment w is an argument instead of the end point y, as ``y - x`` loses digits for close points.

        Parameters
        ----------
        function : casadi.Function
            Scalar function f(x, *others).
        x : casadi.SX
            Initial point.
        w : casadi.SX
            Increment y - x.
        *others : casadi.SX
            Other arguments of f, held constant.

        Returns
        -------
        casadi.SX
            Discrete gradient, of the shape of x.
        """
        raise NotImplementedError

    # -- functions of two arguments: means over both ends of the frozen argument (Kinon and Betsch 2024, 129-131)

    def kinetic_gradients(self, e: ElementFunctions, q0: Expr, Dq: Expr, v0: Expr, Dv: Expr) -> tuple[Expr, Expr]:
        """Return discrete gradients of T(q, v) in q and v: ``DG_q T . Dq + DG_v T . Dv = T(q1, v1) - T(q0, v0)``."""
        m = e.model
        if m.T.is_zero():
            return ca.SX(m.n, 1), ca.SX(m.n, 1)
        T_of_q = ca.Function("T", [m.q, m.v, m.k], [m.T])
        T_of_v = ca.Function("T", [m.v, m.q, m.k], [m.T])
        dq_terms = [self(T_of_q, q0, Dq, v, e.k) for v in (v0, v0 + Dv)]
        dv_terms = [self(T_of_v, v0, Dv, q, e.k) for q in (q0, q0 + Dq)]
        return sum(dq_terms) / 2, sum(dv_terms) / 2

    def gradient_and_time_increment(
        self, e: ElementFunctions, f: Expr, q0: Expr, Dq: Expr, t: Expr, h: Expr
    ) -> tuple[Any, Any]:
        """Return the discrete gradient in q of an expression f(q, t) of the element, and its increment in time.

        ``DG_q f . Dq + D_t f = f(q1, t + h) - f(q0, t)``.
        """
        m = e.model
        if f.is_zero():
            return ca.SX(m.n, 1), ca.SX(0)
        if not ca.depends_on(f, m.t):
            return self(ca.Function("f", [m.q, m.k], [f]), q0, Dq, e.k), ca.SX(0)
        of_q = ca.Function("f", [m.q, m.t, m.k], [f])
        of_t = ca.Function("f", [m.t, m.q, m.k], [f])
        dq_terms = [self(of_q, q0, Dq, time, e.k) for time in (t, t + h)]
        dt_terms = [increments(of_t, t, h, [q, e.k]) for q in (q0, q0 + Dq)]
        return sum(dq_terms) / 2, sum(dt_terms) / 2
