"""What the figures of S003 have in common: runs in fictive time, runs of a BDF code, and claims about drift."""

from __future__ import annotations

import functools
import warnings
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from matplotlib.figure import Figure

from livens import problems
from livens.errors import IntegrationError
from livens.plot.style import GREY
from livens.reproduce.core import Claim
from livens.results.result import Result
from livens.run.simulate import simulate
from livens.schemes.recipes.maps import phase_of
from livens.schemes.scaling import Scaling


@functools.lru_cache(maxsize=128)
def adaptive(
    name: str,
    scheme: str,
    eps: float,
    t_end: float,
    options: tuple[tuple[str, Any], ...] = (),
    scaling: Scaling | None = None,
    every: int = 1,
) -> Result:
    """A run of a ready problem with steps `eps` of a fictive time, scaled as the problem says or otherwise."""
    problem = problems.load(name, **dict(options))
    return simulate(problem, scheme=scheme, h=eps, t_end=t_end, scaling=scaling, every=every, progress=False)


def until_failure(*arguments: Any, **options: Any) -> Result:
    """The same run, or what there is of it until it breaks down."""
    try:
        return adaptive(*arguments, **options)
    except IntegrationError as error:
        if error.result is None:
            raise
        return error.result


# -- a code for stiff equations, for comparison -----------------------------------------------------------------------
@dataclass(frozen=True)
class Steps:
    """The steps a BDF code took."""

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    energy: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        return np.diff(self.t)


@functools.lru_cache(maxsize=64)
def bdf(name: str, tolerance: float, t_end: float, order: int = 2) -> Steps:
    """A ready problem by VODE: BDF of orders up to the given one, and its own choice of steps.

    The tolerance is both the absolute and the relative one. VODE can be kept to order 2, unlike other codes at hand,
    and hands out every step it takes. It finds the Jacobian by itself, from differences: one that is passed to it is
    taken for its transpose (SciPy 1.17), Newton's method fails in every bounce, and the errors are 100 times as large.
    """
    from scipy.integrate import ode

    problem = problems.load(name)
    assert problem.q0 is not None and problem.v0 is not None
    model = phase_of(problem.system)
    z, k = ca.vertcat(model.q, model.p), problem.system.parameter_vector()
    rate = ca.vertcat(model.velocity, model.momentum_rate)
    f, energy = _compiled(model, z, k, rate), _compiled(model, z, k, model.H)
    solver = ode(lambda t, y: f(y))
    solver.set_integrator("vode", method="bdf", order=order, rtol=tolerance, atol=tolerance, with_jacobian=True)
    start = np.concatenate([problem.q0, model.momenta(problem.q0, problem.v0)])
    solver.set_initial_value(start, 0.0)
    t, states = [0.0], [start]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # VODE warns where it gives up
        while solver.t < t_end:
            solver.integrate(t_end, step=True)
            t.append(solver.t)
            states.append(solver.y.copy())
    y = np.array(states)
    speeds = _compiled(model, z, k, model.velocity)
    v = np.array([speeds(state) for state in y])
    return Steps(np.array(t), y[:, : model.n], v, np.array([energy(state).item() for state in y]))


def _compiled(model: Any, z: Any, k: np.ndarray, expression: Any) -> Any:
    """A vector as a function of the state alone, called without any detour."""
    function = ca.Function("f", [z, model.k], [ca.densify(expression)])
    made: Any = function.buffer()
    buffer, evaluate = made
    given, found = np.zeros(z.numel()), np.zeros(function.numel_out(0))
    parameters = np.array(k, dtype=float)
    buffer.set_arg(0, given.data)
    buffer.set_arg(1, parameters.data)
    buffer.set_res(0, found.data)

    def call(y: np.ndarray, kept: Any = (buffer, parameters)) -> np.ndarray:  # the buffer does not keep them itself
        given[:] = y
        evaluate()
        return found.copy()

    return call


# -- claims -----------------------------------------------------------------------------------------------------------
def straight(t: np.ndarray, values: np.ndarray) -> float:
    """What a straight line through the values changes over the run."""
    return float(np.polyfit(t - t[0], values, 1)[0] * (t[-1] - t[0]))


def drifts(text: str, t: np.ndarray, values: np.ndarray) -> Claim:
    """A straight line changes by more than a fifth of how far the values swing."""
    change, fifth, words = _against_swing(t, values)
    return Claim(text, f"{words}, more than a fifth of the swing of {5 * fifth:.1e}", change > fifth)


def steady(text: str, t: np.ndarray, values: np.ndarray) -> Claim:
    """A straight line changes by at most that."""
    change, fifth, words = _against_swing(t, values)
    return Claim(text, f"{words}, at most a fifth of the swing of {5 * fifth:.1e}", change <= fifth)


def _against_swing(t: np.ndarray, values: np.ndarray) -> tuple[float, float, str]:
    change = straight(t, values)
    return abs(change), float(np.ptp(values)) / 5, f"{change:+.1e} over the run by a straight line"


def largest_ratio(sizes: np.ndarray) -> float:
    """Of one step to the next, or the next to the one; the last step is cut to end in time."""
    return float(np.exp(np.abs(np.diff(np.log(sizes[:-1]))).max()))


def headed(picture: Figure, words: str) -> Figure:
    picture.suptitle(words, x=0.01, ha="left", color=GREY)
    return picture
