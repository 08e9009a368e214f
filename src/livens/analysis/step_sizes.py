"""Statistics of variable step sizes."""

from __future__ import annotations

import numpy as np

from livens import schemes
from livens.analysis.observables import iterate_blocks
from livens.errors import InputError
from livens.results.result import Result


def has_variable_steps(result: Result) -> bool:
    """Return True if step sizes vary: by step-size control, or by equal steps of a fictive time."""
    return bool(result.info.control) or uses_fictive_time(result)


def uses_fictive_time(result: Result) -> bool:
    """Return True if h is a step of a fictive time."""
    if "fictive_time" in result.stored:
        return True
    try:
        return schemes.get(result.info.scheme).fictive
    except InputError:  # a user-defined scheme
        return False


def step_sizes(result: Result) -> dict[str, object] | None:
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
    if not has_variable_steps(result):
        return None
    smallest, largest, last, is_first_block = np.inf, 0.0, None, True
    if "step_size" in result.stored:
        for _, (sizes,) in iterate_blocks(result, ["step_size"]):
            # the last row is excluded: hold it back until another row follows
            completed = np.concatenate([[] if last is None else [last], sizes[1:] if is_first_block else sizes])
            if len(completed):
                last, completed, is_first_block = completed[-1], completed[:-1], False
            smallest, largest = min(smallest, completed.min(initial=np.inf)), max(largest, completed.max(initial=0.0))
    steps = result.statistics.steps
    return {
        "smallest": float(smallest) if largest else None,
        "largest": float(largest) if largest else None,
        "mean": float(result.last("t") - result.info.t0) / steps if steps else None,
        "rejected": result.statistics.rejected,
    }
