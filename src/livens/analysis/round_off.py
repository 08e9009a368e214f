"""Round-off bounds of observables: first-order effect of rounding all numbers of the state."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import casadi as ca
import numpy as np

from livens.analysis.observables import expression
from livens.engine.observables.element_sums import ElementObservables
from livens.models.base import Model
from livens.results.result import Result

#: Number of sampled states per block of rows, and per run.
_SAMPLES_PER_BLOCK, _SAMPLES_PER_RUN = 16, 64


class RoundOffBound:
    """Round-off bound ``eps max(sum |df/dz_i| |z_i|, |f|)`` over sampled states of a run, for several observables f.

    The term ``eps |f|`` accounts for constant terms of f.
    """

    def __init__(self, model: Model, names: Sequence[str], k: np.ndarray) -> None:
        self._names, self._k = list(names), k
        self._terms = _terms_from_element_sums(model, names, k) or _terms_from_expressions(model, names, k)
        self._largest = np.zeros(len(names))

    def update(self, t: np.ndarray, state: Sequence[np.ndarray], samples: int = _SAMPLES_PER_BLOCK) -> None:
        """Update the bound with sampled states, given by their parts with one row per time."""
        for i in np.unique(np.linspace(0, len(t) - 1, samples).astype(int)):
            terms = self._terms([part[i] for part in state], t[i])
            # derivatives may be infinite where the quantity itself is finite
            self._largest = np.maximum(self._largest, np.where(np.isfinite(terms), terms, 0.0))

    def __getitem__(self, name: str) -> float:
        return float(np.finfo(float).eps * self._largest[self._names.index(name)])


#: Function of the parts of a state and of a time that returns the term magnitudes of the observables.
_Terms = Callable[[Sequence[np.ndarray], float], np.ndarray]


def _terms_from_expressions(model: Model, names: Sequence[str], k: np.ndarray) -> _Terms:
    view, z = model.view, model.view.state
    expressions = [expression(model, name) for name in names]
    terms = [ca.norm_inf(ca.fmax(ca.fabs(ca.jacobian(f, z)) @ ca.fabs(z), ca.fabs(f))) for f in expressions]
    function = view.function(ca.vertcat(*terms))
    return lambda state, t: np.array(function(*state, t, k)).ravel()


def _terms_from_element_sums(model: Model, names: Sequence[str], k: np.ndarray) -> _Terms | None:
    """Return the term magnitudes of a large system as sums over its elements; None if the system is not large."""
    sums = model.roundoff_element_sums(names)
    if sums is None:
        return None
    table, slices = ElementObservables(sums[0]), sums[1]

    def terms(state: Sequence[np.ndarray], t: float) -> np.ndarray:
        (row,) = table(np.array([t]), np.concatenate(state)[None], k)
        return np.array([row[columns].max() for columns in slices])

    return terms


def round_off(result: Result, name: str) -> float:
    """Return the round-off bound of an observable: its largest change by one rounding of all numbers of the state.

    >>> import livens as lv
    >>> run = lv.simulate(lv.problems.load("simple-pendulum"), t_end=1.0)
    >>> bool(1e-16 < round_off(run, "total_energy") < 1e-13)
    True
    """
    bound = RoundOffBound(result.system, [name], result.parameter_vector)
    bound.update(result.t, [getattr(result, part) for part in result.system.view.symbols], _SAMPLES_PER_RUN)
    return bound[name] or float(np.finfo(float).eps)
