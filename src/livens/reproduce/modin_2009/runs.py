"""Shared functions of the figures of Modin 2009: runs in fictive time, runs of a BDF code, and drift claims."""

from __future__ import annotations

import functools
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np
from matplotlib.figure import Figure

from livens import problems
from livens.errors import IntegrationError
from livens.plot.style import GREY
from livens.reproduce.core import Claim
from livens.results.result import Result
from livens.run.simulate import simulate
from livens.schemes.discretization.phase_space_map import as_hamiltonian
from livens.schemes.scaling import Scaling
from livens.types import Expr, ModelFunction

if TYPE_CHECKING:
    from livens.models.hamiltonian.model import Hamiltonian


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
    """Return a run of a built-in problem with steps `eps` in fictive time, by default with its own scaling."""
    problem = problems.load(name, **dict(options))
    return simulate(problem, scheme=scheme, h=eps, t_end=t_end, scaling=scaling, every=every, progress=False)


def until_failure(*arguments: object, **options: object) -> Result:
    """Return the run of `adaptive`, or the part before its failure."""
    try:
        return adaptive(*arguments, **options)
    except IntegrationError as error:
        if error.result is None:
            raise
        return error.result


# -- BDF code for comparison ------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class BdfSteps:
    """Steps of a BDF code."""

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    energy: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        return np.diff(self.t)


@functools.lru_cache(maxsize=64)
def bdf(name: str, tolerance: float, t_end: float, order: int = 2) -> BdfSteps:
    """Integrate a built-in problem by VODE: BDF of orders up to `order`, with step-size control.

    `tolerance` is both the absolute and the relative tolerance. Unlike other codes, VODE can be limited to order 2 and
    returns all steps. The Jacobian is approximated by differences: VODE interprets a user-supplied Jacobian as its
    transpose (SciPy 1.17), so that Newton's method fails in each collision and errors are 100 times larger.
    """
    from scipy.integrate import ode

    problem = problems.load(name)
    assert problem.q0 is not None and problem.v0 is not None
    model = as_hamiltonian(problem.model)
    z, k = ca.vertcat(model.q, model.p), problem.model.parameter_vector()
    rate = ca.vertcat(model.velocity, model.momentum_rate)
    f, energy = _compiled(model, z, k, rate), _compiled(model, z, k, model.H)
    solver = ode(lambda t, y: f(y))
    solver.set_integrator("vode", method="bdf", order=order, rtol=tolerance, atol=tolerance, with_jacobian=True)
    initial = np.concatenate([problem.q0, model.momenta(problem.q0, problem.v0)])
    solver.set_initial_value(initial, 0.0)
    t, states = [0.0], [initial]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # VODE reports failures as warnings
        while solver.t < t_end:
            solver.integrate(t_end, step=True)
            t.append(solver.t)
            states.append(solver.y.copy())
    y = np.array(states)
    speeds = _compiled(model, z, k, model.velocity)
    v = np.array([speeds(state) for state in y])
    return BdfSteps(np.array(t), y[:, : model.n], v, np.array([energy(state).item() for state in y]))


def _compiled(model: Hamiltonian, z: Expr, k: np.ndarray, expression: Expr) -> ModelFunction:
    """Return a vector expression as a compiled function of the state, evaluated through a CasADi buffer."""
    function = ca.Function("f", [z, model.k], [ca.densify(expression)])
    buffer_pair: Any = function.buffer()
    buffer, evaluate = buffer_pair
    arguments, values_out = np.zeros(z.numel()), np.zeros(function.numel_out(0))
    parameters = np.array(k, dtype=float)
    buffer.set_arg(0, arguments.data)
    buffer.set_arg(1, parameters.data)
    buffer.set_res(0, values_out.data)

    def call(
        y: np.ndarray, keep_alive: object = (buffer, parameters)
    ) -> np.ndarray:  # the buffer does not own its arguments
        arguments[:] = y
        evaluate()
        return values_out.copy()

    return call


# -- claims -----------------------------------------------------------------------------------------------------------
def linear_change(t: np.ndarray, values: np.ndarray) -> float:
    """Return the change over the run of the linear fit of the values."""
    return float(np.polyfit(t - t[0], values, 1)[0] * (t[-1] - t[0]))


def claim_drift(text: str, t: np.ndarray, values: np.ndarray) -> Claim:
    """Return the claim that the linear change exceeds a fifth of the range of the values."""
    change, fifth, measured = _linear_change_and_limit(t, values)
    return Claim(text, f"{measured}, more than a fifth of the range {5 * fifth:.1e}", change > fifth)


def claim_no_drift(text: str, t: np.ndarray, values: np.ndarray) -> Claim:
    """Return the claim that the linear change is at most a fifth of the range of the values."""
    change, fifth, measured = _linear_change_and_limit(t, values)
    return Claim(text, f"{measured}, at most a fifth of the range {5 * fifth:.1e}", change <= fifth)


def _linear_change_and_limit(t: np.ndarray, values: np.ndarray) -> tuple[float, float, str]:
    change = linear_change(t, values)
    return abs(change), float(np.ptp(values)) / 5, f"{change:+.1e} linear change over the run"


def largest_step_ratio(sizes: np.ndarray) -> float:
    """Return the largest ratio of consecutive steps, in either direction; the shortened last step is excluded."""
    return float(np.exp(np.abs(np.diff(np.log(sizes[:-1]))).max()))


def with_title(picture: Figure, title: str) -> Figure:
    picture.suptitle(title, x=0.01, ha="left", color=GREY)
    return picture
