"""Reference solutions without closed form: ordinary differential equations solved by DOP853 close to round-off."""

from __future__ import annotations

import functools
from collections.abc import Callable

import casadi as ca
import numpy as np

from livens.models.equations_of_motion import equations_of_motion
from livens.models.system import System

#: Relative and absolute error tolerance of DOP853, whose smallest relative tolerance is 100 units of round-off.
_RTOL, _ATOL = 2.3e-14, 1e-14

RightHandSide = Callable[[float, np.ndarray], np.ndarray]
Reference = Callable[[float], dict[str, np.ndarray]]


def reference_ode_solution(rhs: RightHandSide, y0: np.ndarray, t0: float = 0.0) -> Callable[[float], np.ndarray]:
    """Return the solution of ``y' = rhs(t, y)``, ``y(t0) = y0``, as a function of time, by DOP853 (order 8).

    >>> float(reference_ode_solution(lambda t, y: y, np.ones(1))(1.0)[0])  # doctest: +ELLIPSIS
    2.7182818284590...
    """

    @functools.lru_cache(maxsize=64)
    def final_state(t: float) -> np.ndarray:
        from scipy.integrate import solve_ivp  # imported here because the import is slow

        return np.asarray(solve_ivp(rhs, (t0, t), y0, method="DOP853", rtol=_RTOL, atol=_ATOL).y[:, -1])

    return lambda t: final_state(float(t)).copy()


def reference_motion(system: System, q0: np.ndarray, v0: np.ndarray) -> Reference:
    """Return the motion from q0, v0 at t = 0 as a function of time, with ``q``, ``v`` and ``multipliers``.

    Accelerations and multipliers solve the index-1 equations ``M a + G^T lam = f, G a = -c``. The solution is unique if
    the mass matrix is regular on the null space of G. The constraint drift grows like t^2 from about 1e-16. Suitable
    for motions that are neither stiff nor long.

    >>> import livens as lv
    >>> pendulum = lv.problems.load("simple-pendulum")
    >>> motion = reference_motion(pendulum.model, pendulum.q0, pendulum.v0)
    >>> bool(np.abs(motion(1.0)["q"] - pendulum.reference(1.0)["q"]).max() < 1e-12)
    True
    """
    n, k = system.n, system.parameter_vector()

    @functools.cache  # derived at the first evaluation, so that loading a problem stays fast
    def equations() -> ca.Function:
        d = equations_of_motion(system)
        return ca.Function("f", [d.q, d.v, d.t, d.k], [ca.densify(ca.horzcat(*d.kkt_system))])

    def acceleration_and_multipliers(t: float, y: np.ndarray) -> np.ndarray:
        coefficients = equations()(y[:n], y[n:], t, k).full()
        return np.linalg.solve(coefficients[:, :-1], coefficients[:, -1])

    state = reference_ode_solution(
        lambda t, y: np.concatenate([y[n:], acceleration_and_multipliers(t, y)[:n]]), np.concatenate([q0, v0])
    )

    def reference(t: float) -> dict[str, np.ndarray]:
        y = state(t)
        return {"q": y[:n], "v": y[n:], "multipliers": acceleration_and_multipliers(t, y)[n:]}

    return reference
