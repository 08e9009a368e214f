"""The sizes of the steps of a run, where they differ."""

from __future__ import annotations

from typing import Any

import numpy as np

from livens import schemes
from livens.analysis.observables import walk
from livens.errors import InputError
from livens.results.result import Result


def differ(result: Result) -> bool:
    """Whether the run chose the sizes of its steps: they were controlled, or equal in a fictive time."""
    return bool(result.facts.control) or fictive(result)


def fictive(result: Result) -> bool:
    """Whether h is a step of a fictive time."""
    if "fictive_time" in result.stored:
        return True
    try:
        return schemes.get(result.facts.scheme).fictive
    except InputError:  # a scheme of the user's own
        return False


def step_sizes(result: Result) -> dict[str, Any] | None:
    """Smallest, largest and mean size of the steps of a run, and how many were rejected; None if all are equal.

    The mean is that of all steps. The smallest and largest are those of the stored ones, the last step aside, which is
    as long as it has to be to end where the run is to end; None if step sizes are not stored.

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
            # the last row of a block is kept back until there is another one
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
