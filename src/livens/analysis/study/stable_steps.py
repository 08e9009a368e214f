"""Stability limit of the step size of schemes that evaluate expensive forces once per step (Modin 2009, paper V)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from livens import schemes
from livens.errors import InputError, explain_call_errors
from livens.models.problem import Problem
from livens.schemes.core.scheme import Scheme
from livens.schemes.discretization.stability_limit import force_jacobians, stability_limit
from livens.types import ArrayLike
from livens.validation import check_number


@dataclass(frozen=True)
class LongestStep:
    """Stability limit of the step size of a scheme at one state.

    Parameters
    ----------
    scheme : str
        Name of the scheme.
    h : float
        Longest stable step size, in seconds; infinite without a limit.
    stiffness : float
        Largest eigenvalue of stiffness over mass, in 1/s^2.
    damping : float
        Largest eigenvalue of damping over mass, in 1/s.
    """

    scheme: str
    h: float
    stiffness: float
    damping: float

    def __str__(self) -> str:
        if not np.isfinite(self.h):
            return f"with {self.scheme} the expensive forces do not limit the step size here"
        parts = f"stiffness over mass {self.stiffness:.3g} 1/s^2, damping {self.damping:.3g} 1/s"
        return f"with {self.scheme} steps of up to {self.h:.2g} s are stable here: {parts}"


@explain_call_errors
def longest_step(
    model: Any,
    scheme: str | Scheme | None = None,
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    *,
    t0: float | None = None,
    parameters: Mapping[str, object] | None = None,
) -> LongestStep:
    """Return the longest stable step size at a state.

    Supported by schemes that treat expensive forces separately: `semi-explicit`, `semi-explicit-2` and `imex`. The
    forces are linearised at the state; contacts that are open there do not contribute.

    Parameters
    ----------
    model : Model or Problem
        Model with expensive forces.
    scheme : str or Scheme, optional
        Integration scheme. Default: that of the problem.
    q0, v0 : array_like of shape (n,), optional
        Coordinates and velocities. Default: the initial values of the problem.
    t0 : float, optional
        Time.
    parameters : dict of str to float, optional
        Parameter values.

    Returns
    -------
    LongestStep
        Step size, stiffness and damping.

    Raises
    ------
    InputError
        If the scheme does not treat expensive forces separately.

    Examples
    --------

    >>> import livens as lv
    >>> spring = lv.Force(lambda q: 50.0 * q[0] ** 2, expensive=True, conservative=True)
    >>> mass = lv.Hamiltonian("x", kinetic=lambda p: p[0] ** 2 / 2, forces=spring)
    >>> print(lv.study.longest_step(mass, "semi-explicit:0.5,0.8", q0=[0.1], v0=[0.0]))
    with semi-explicit:0.5,0.8 steps of up to 0.2 s are stable here: stiffness over mass 100 1/s^2, damping 0 1/s
    """
    initial_values: dict[str, object] = {"q0": q0, "v0": v0}
    if isinstance(model, Problem):
        initial_values |= {
            name: value for name, value in model.start_values.items() if initial_values.get(name) is None
        }
        scheme, parameters = scheme or model.scheme, {**model.parameters, **(parameters or {})}
        t0, model = model.t0 if t0 is None else t0, model.model
    if scheme is None:
        raise InputError("scheme is missing: pass semi-explicit:<alpha>,<beta>, semi-explicit-2:<beta> or imex")
    chosen = schemes.get(scheme)
    extrapolation = getattr(chosen, "explicit_point", None)
    if extrapolation is None:
        raise InputError(f"scheme '{chosen.name}' does not split off expensive forces; use semi-explicit or imex")
    schemes.check_compatible(chosen, model)
    k = model.parameter_vector(dict(parameters or {}))
    state = model.initial_state(
        initial_values, k, check_number("t0", 0.0 if t0 is None else t0), project=False, redundant="remove"
    )
    by_q, by_v = force_jacobians(model, state["q"], state["v"], state.t, k)
    sizes = [float(np.abs(np.linalg.eigvals(matrix)).max(initial=0.0)) for matrix in (by_q, by_v)]
    return LongestStep(chosen.name, stability_limit(by_q, by_v, extrapolation), *sizes)
