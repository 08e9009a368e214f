"""Simulation to a requested accuracy by step halving."""

from __future__ import annotations

from typing import Any

import numpy as np

from livens.errors import IntegrationError, explain_call_errors
from livens.models.base import Model
from livens.models.problem import Problem
from livens.results.result import Result
from livens.run.simulate import simulate
from livens.validation import check_integer, check_positive

#: Maximum energy error relative to the largest kinetic energy. Runs may agree and still miss a fast event; the energy
#: of a conservative run reveals that.
_MAX_ENERGY_ERROR = 1e-3


@explain_call_errors
def to_accuracy(
    model: Model | Problem, tolerance: float, *, h: float | None = None, halvings: int = 10, **options: Any
) -> Result:
    """Simulate with the steps h, h/2, h/4, ... until two successive runs agree at the end; return the last run.

    For conservative models the energy of the run must be constant as well.

    Parameters
    ----------
    model : Model or Problem
        Model to simulate.
    tolerance : float
        Largest allowed difference of the coordinates (or states) at the final time.
    h : float, optional
        Initial step size. Default: that of the problem.
    halvings : int, default 10
        Maximum number of halvings.
    **options
        Options of `livens.simulate`.

    Returns
    -------
    Result
        Run with the shortest step.

    Raises
    ------
    IntegrationError
        If the accuracy is not reached. ``error.result`` contains the last run.

    Examples
    --------

    >>> import livens as lv
    >>> pendulum = lv.problems.load("nonlinear-pendulum")
    >>> run = to_accuracy(pendulum, 1e-4, h=0.5, t_end=2.0, scheme="livens-em")
    >>> bool(abs(run.q[-1] - pendulum.reference(2.0)["q"]).max() < 1e-4)
    True
    """
    limit = check_positive("tolerance", tolerance)
    halvings = check_integer("halvings", halvings, minimum=1)
    size = check_positive("h", model.h if h is None and isinstance(model, Problem) else h)
    previous: Result | None = None
    reason = ""
    for _ in range(halvings + 1):
        try:
            run = simulate(model, h=size, **options)
        except IntegrationError as error:
            reason, previous = str(error), None
        else:
            if previous is not None:
                change, energy = _change(previous, run), _energy_error(run)
                if change <= limit and energy <= _MAX_ENERGY_ERROR:
                    return run
                reason = f"the last two runs differ by {change:.3g} at the end"
                if energy > _MAX_ENERGY_ERROR:
                    reason += f", and the energy of the last one changes by {energy:.3g} of the largest kinetic energy"
            previous = run
        size /= 2
    raise IntegrationError(
        f"the accuracy {limit:g} was not reached with steps down to {2 * size:.3g}: {reason or 'too few halvings'}",
        previous,
    )


def _change(coarse: Result, fine: Result) -> float:
    names = [name for name in ("q", "x") if name in coarse.stored]
    return max(float(np.abs(getattr(coarse, name)[-1] - getattr(fine, name)[-1]).max()) for name in names)


def _energy_error(run: Result) -> float:
    """Return the largest change of energy relative to the largest kinetic energy; 0 for non-conservative models."""
    if not run.system.conservative or not {"q", "v", "p"} <= set(run.stored):
        return 0.0
    energy = np.asarray(run.observe("total_energy"))
    kinetic = np.abs(np.einsum("ij,ij->i", run.p, run.v)).max() / 2
    return float(np.abs(energy - energy[0]).max() / (kinetic or 1.0))
