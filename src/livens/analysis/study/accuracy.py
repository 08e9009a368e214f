"""A run as accurate as its user asks for, or an error that says it is not."""

from __future__ import annotations

from typing import Any

import numpy as np

from livens.errors import IntegrationError
from livens.expressions.numbers import positive, whole_number
from livens.models.model import Model
from livens.models.problem import Problem
from livens.results.result import Result
from livens.run.simulate import simulate

#: Steps may agree with each other and still be too long for something the motion does at once, such as passing a narrow
#: place. Where energy is constant, one that changes by more than this part of the largest kinetic energy tells.
_ENERGY = 1e-3


def to_accuracy(
    model: Model | Problem, tolerance: float, *, h: float | None = None, halvings: int = 10, **options: Any
) -> Result:
    """The run of the longest of the steps h, h/2, h/4, ... that agrees at its end with the one before it.

    `tolerance` is for the largest difference of the coordinates (or states) at t_end. Where forces have a potential,
    the energy of the run must be right too. `options` are those of `livens.simulate`. If all `halvings` are not
    enough, IntegrationError says how far it got, and carries the last run as `result`.

    >>> import livens as lv
    >>> pendulum = lv.problems.load("nonlinear-pendulum")
    >>> run = to_accuracy(pendulum, 1e-4, h=0.5, t_end=2.0, scheme="livens-em")
    >>> bool(abs(run.q[-1] - pendulum.reference(2.0)["q"]).max() < 1e-4)
    True
    """
    limit = positive("tolerance", tolerance)
    halvings = whole_number("halvings", halvings, least=1)
    size = positive("h", model.h if h is None and isinstance(model, Problem) else h)
    last: Result | None = None
    reason = ""
    for _ in range(halvings + 1):
        try:
            run = simulate(model, h=size, **options)
        except IntegrationError as error:
            reason, last = str(error), None
        else:
            if last is not None:
                change, energy = _change(last, run), _energy_error(run)
                if change <= limit and energy <= _ENERGY:
                    return run
                reason = f"the last two runs differ by {change:.3g} at the end"
                if energy > _ENERGY:
                    reason += f", and the energy of the last one changes by {energy:.3g} of the largest kinetic energy"
            last = run
        size /= 2
    raise IntegrationError(
        f"the accuracy {limit:g} was not reached with steps down to {2 * size:.3g}: {reason or 'too few halvings'}",
        last,
    )


def _change(one: Result, two: Result) -> float:
    names = [name for name in ("q", "x") if name in one.stored]
    return max(float(np.abs(getattr(one, name)[-1] - getattr(two, name)[-1]).max()) for name in names)


def _energy_error(run: Result) -> float:
    """The largest change of energy relative to the largest kinetic energy; 0 where energy need not be constant."""
    if not run.system.conservative or not {"q", "v", "p"} <= set(run.stored):
        return 0.0
    energy = np.asarray(run.observe("total_energy"))
    kinetic = np.abs(np.einsum("ij,ij->i", run.p, run.v)).max() / 2
    return float(np.abs(energy - energy[0]).max() / (kinetic or 1.0))
