"""Statistics of variable step sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

from livens import schemes
from livens.analysis.observables import walk
from livens.errors import InputError
from livens.results.result import Result


def differ(result: Result) -> bool:
    """Return True if step sizes vary: by step-size control, or by equal steps of a fictive time."""
    return bool(result.facts.control) or fictive(result)


def fictive(result: Result) -> bool:
    """Return True if h is a step of a fictive time."""
    if "fictive_time" in result.stored:
        return True
    try:
        return schemes.get(result.facts.scheme).fictive
    except InputError:  # a user-defined scheme
        return False


def step_sizes(result: Result) -> dict[str, Any] | None:
    """Return smallest, largest and mean step size and the number of rejected steps; None if all steps are equal.

    The mean is over all steps. Smallest and largest are over the stored steps without the last one, which is shortened
    to end at the final time; None if step sizes are not stored.

    >>> import livens as lv
    >>> pendulum = lv.FirstOrder("angle rate", rhs=lambda x: [x[1], -lv.math.sin(x[0])])
    >>> control = lv.StepControl(tolerance=1e-8)
    >>> run = lv.simulate(pendulum, x0=[3.0, 0.0], scheme="gauss-3", h=0.1, t_end=20.0, control=control)
    >>> sizes = step_sizes(run)
    >>> sizes["smallest"] < sizes["mean"] < sizes["largest"], sizes["rejected"] == run.statistics.rejected
    (True, True)
    """
    if not differ(result):
        return None
    smallest, largest, last, first = np.inf, 0.0, None, True
    if "step_size" in result.stored:
        for _, (sizes,) in walk(result, ["step_size"]):
            # the last row is excluded: hold it back until another row follows
            known = np.concatenate([[] if last is None else [last], sizes[1:] if first else sizes])
            if len(known):
                last, known, first = known[-1], known[:-1], False
            smallest, largest = min(smallest, known.min(initial=np.inf)), max(largest, known.max(initial=0.0))
    steps = result.statistics.steps
    return {
        "smallest": float(smallest) if largest else None,
        "largest": float(largest) if largest else None,
        "mean": float(result.last("t") - result.facts.t0) / steps if steps else None,
        "rejected": result.statistics.rejected,
    }
