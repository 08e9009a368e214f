"""Reference solutions without closed form: ordinary differential equations solved by DOP853 close to round-off."""

from __future__ import annotations

import functools
from collections.abc import Callable

import casadi as ca
import numpy as np

from livens.models.summed import dynamics
from livens.models.system import System

#: Relative and absolute error tolerance of DOP853, whose smallest relative tolerance is 100 units of round-off.
_RELATIVE, _ABSOLUTE = 2.3e-14, 1e-14

Rate = Callable[[float, np.ndarray], np.ndarray]
Reference = Callable[[float], dict[str, np.ndarray]]


def accurate_solution(rate: Rate, y0: np.ndarray, t0: float = 0.0) -> Callable[[float], np.ndarray]:
    """Return the solution of ``y' = rhs(t, y)``, ``y(t0) = y0``, as a function of time, by DOP853 (order 8).

    >>> float(accurate_solution(lambda t, y: y, np.ones(1))(1.0)[0])  # doctest: +ELLIPSIS
    2.7182818284590...
    """

    @functools.lru_cache(maxsize=64)
    def end(t: float) -> np.ndarray:
        from scipy.integrate import solve_ivp  # imported here because the import is slow

        return np.asarray(solve_ivp(rate, (t0, t), y0, method="DOP853", rtol=_RELATIVE, atol=_ABSOLUTE).y[:, -1])

    return lambda t: end(float(t)).copy()


def accurate_motion(system: System, q0: np.ndarray, v0: np.ndarray) -> Reference:
    """Return the motion from q0, v0 at t = 0 as a function of time, with ``q``, ``v`` and ``multipliers``.

    Accelerations and multipliers solve the index-1 equations ``M a + G^T lam = f, G a = -c``. The solution is unique if
    the mass matrix is regular on the null space of G. The constraint drift grows like t^2 from about 1e-16. Suitable
    for motions that are neither stiff nor long.

    >>> import livens as lv
    >>> pendulum = lv.problems.load("simple-pendulum")
    >>> motion = accurate_motion(pendulum.system, pendulum.q0, pendulum.v0)
    >>> bool(np.abs(motion(1.0)["q"] - pendulum.reference(1.0)["q"]).max() < 1e-12)
    True
    """
    n, k = system.n, system.parameter_vector()

    @functools.cache  # derived at the first evaluation, so that loading a problem stays fast
    def equations() -> ca.Function:
        d = dynamics(system)
        return ca.Function("f", [d.q, d.v, d.t, d.k], [ca.densify(ca.horzcat(*d.acceleration_system))])

    def solved(t: float, y: np.ndarray) -> np.ndarray:
        numbers = equations()(y[:n], y[n:], t, k).full()
        return np.linalg.solve(numbers[:, :-1], numbers[:, -1])

    state = accurate_solution(lambda t, y: np.concatenate([y[n:], solved(t, y)[:n]]), np.concatenate([q0, v0]))

    def reference(t: float) -> dict[str, np.ndarray]:
        y = state(t)
        return {"q": y[:n], "v": y[n:], "multipliers": solved(t, y)[n:]}

    return reference
