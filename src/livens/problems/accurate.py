"""Reference motions without a closed form: ordinary differential equations solved to nearly all digits of a double."""

from __future__ import annotations

import functools
from collections.abc import Callable

import casadi as ca
import numpy as np

from livens.models.summed import dynamics
from livens.models.system import System

#: What DOP853 is asked for; it takes no less than 100 units of round-off.
_RELATIVE, _ABSOLUTE = 2.3e-14, 1e-14

Rate = Callable[[float, np.ndarray], np.ndarray]
Reference = Callable[[float], dict[str, np.ndarray]]


def accurate_solution(rate: Rate, y0: np.ndarray, t0: float = 0.0) -> Callable[[float], np.ndarray]:
    """The solution of ``y' = rate(t, y)`` from y0 as a function of time, by an explicit method of order 8.

    >>> float(accurate_solution(lambda t, y: y, np.ones(1))(1.0)[0])  # doctest: +ELLIPSIS
    2.7182818284590...
    """

    @functools.lru_cache(maxsize=64)
    def end(t: float) -> np.ndarray:
        from scipy.integrate import solve_ivp  # takes a while to load, and few who load problems need it

        return np.asarray(solve_ivp(rate, (t0, t), y0, method="DOP853", rtol=_RELATIVE, atol=_ABSOLUTE).y[:, -1])

    return lambda t: end(float(t)).copy()


def accurate_motion(system: System, q0: np.ndarray, v0: np.ndarray) -> Reference:
    """The motion from q0, v0 at t = 0 as a function of time that gives ``q``, ``v`` and ``multipliers``.

    Accelerations and multipliers come from ``M a + G^T lam = f, G a = -c``, the equations of index 1, which every
    position and velocity determines if the mass is regular on the constraints. Errors of the constraints then grow, but
    from 1e-16 and only with t^2. For motions that are neither stiff nor long.

    >>> import livens as lv
    >>> pendulum = lv.problems.load("simple-pendulum")
    >>> motion = accurate_motion(pendulum.system, pendulum.q0, pendulum.v0)
    >>> bool(np.abs(motion(1.0)["q"] - pendulum.reference(1.0)["q"]).max() < 1e-12)
    True
    """
    n, k = system.n, system.parameter_vector()

    @functools.cache  # derived when first asked for: loading a problem stays quick
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
