"""`Multibody.simulate`: simulation of multibody models."""

from __future__ import annotations

import inspect
from typing import Any

from livens.errors import CallError, suggestion
from livens.multibody.multibody import Multibody
from livens.results.result import Result
from livens.run.simulate import simulate

#: Arguments of `livens.simulate` that `Multibody.simulate` accepts, and its own.
_OPTIONS = {"velocity_level", *inspect.signature(simulate).parameters} - {"model", "q0", "v0", "p0", "x0", "y0"}
#: Default step size in seconds.
DEFAULT_H = 1e-3


def _simulate(
    mechanism: Multibody,
    t_end: float = 1.0,
    h: float | None = None,
    *,
    scheme: str | None = None,
    velocity_level: bool = False,
    **options: Any,
) -> Result:
    """Simulate the mechanism from its consistent initial state.

    Parameters
    ----------
    mechanism : Multibody
        Mechanism, the object of the method.
    t_end : float, default 1.0
        End time in seconds.
    h : float, optional
        Step size in seconds. Default: 1e-3, or the first step of adaptive steps, found from their tolerance.
    scheme : str, optional
        Integration scheme. Default: the scheme recommended for the mechanism.
    velocity_level : bool, default False
        Enforce the constraints at velocity level too (GGL stabilisation); selects ``lie-ggl`` as default scheme.
    **options
        Further arguments of `livens.simulate`, such as ``tolerance=1e-6`` for steps that follow the motion.

    Returns
    -------
    Result
        Trajectory, report and statistics.
    """
    for name in options:
        if name not in _OPTIONS:
            raise CallError(f"Multibody.simulate has no argument '{name}'{suggestion(name, _OPTIONS)}")
    default_scheme = "lie-ggl" if velocity_level else mechanism.default_scheme
    q, v = mechanism.initial_state
    control = options.get("control")
    has_tolerance = options.get("tolerance") is not None or (control is not None and control.has_tolerance)
    if h is None and not has_tolerance:
        h = DEFAULT_H
    if h is not None and options.get("scaling") is None:  # otherwise h is a step in fictive time, which adapts
        mechanism.check_step_size(h)
    return simulate(mechanism.system, q, v, scheme=scheme or default_scheme, h=h, t_end=t_end, **options)


Multibody.attach("simulate", _simulate)
