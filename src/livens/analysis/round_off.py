"""Round-off bounds of observables: first-order effect of rounding all numbers of the state; round-off of energies."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import casadi as ca
import numpy as np

from livens.analysis.observables import expression
from livens.engine.observables.element_sums import ElementObservables
from livens.models.base import Model
from livens.models.energy_round_off import energy_at_rest, terms_function, work_of_rounded_forces
from livens.results.result import Result
from livens.types import FloatArray

#: Energies with the round-off of stiff forces and of a motion at rest.
_ENERGIES = ("total_energy", "generalized_energy")
#: Multiple of the round-off bound of a quantity that counts as round-off; over n steps it grows like sqrt(n).
ROUND_OFF_FACTOR = 100
#: Number of sampled states per block of rows, and per run.
_SAMPLES_PER_BLOCK, _SAMPLES_PER_RUN = 16, 64


class RoundOffBound:
    """Round-off bound ``eps max(sum |df/dz_i| |z_i|, |f|)`` over sampled states of a run, for several observables f.

    The term ``eps |f|`` accounts for constant terms of f. Bounds of energies include the work of rounded stiff forces
    in a step and the energy of a motion at rest; these are no multiples of a typical rounding, and enter with the
    reciprocal of `ROUND_OFF_FACTOR`.
    """

    def __init__(self, model: Model, names: Sequence[str], k: np.ndarray, h: float) -> None:
        self._names, self._k, self._h = list(names), k, h
        self._terms = _terms_from_element_sums(model, names, k) or _terms_from_expressions(model, names, k)
        self._largest = np.zeros(len(names))
        self._energy_terms = _energy_terms(model, k) if set(names) & set(_ENERGIES) and h > 0 else None
        self._work = self._at_rest = 0.0

    def update(self, t: np.ndarray, state: Sequence[np.ndarray], samples: int = _SAMPLES_PER_BLOCK) -> None:
        """Update the bound with sampled states, given by their parts with one row per time."""
        for i in np.unique(np.linspace(0, len(t) - 1, samples).astype(int)):
            parts = [part[i] for part in state]
            terms = self._terms(parts, t[i])
            # derivatives may be infinite where the quantity itself is finite
            self._largest = np.maximum(self._largest, np.where(np.isfinite(terms), terms, 0.0))
            if self._energy_terms is not None:
                terms = self._energy_terms(parts, t[i])
                self._work = max(self._work, _finite(work_of_rounded_forces(terms, self._h)))
                self._at_rest = max(self._at_rest, _finite(energy_at_rest(terms, self._h)))

    @property
    def energy(self) -> float:
        """Energy in joules that rounded stiff forces and positions release; 0 for models without velocities."""
        return self._work + self._at_rest

    def __getitem__(self, name: str) -> float:
        first_order = float(np.finfo(float).eps * self._largest[self._names.index(name)])
        return first_order + self.energy / ROUND_OFF_FACTOR if name in _ENERGIES else first_order


def _finite(value: FloatArray) -> float:
    return float(value) if np.isfinite(value) else 0.0


def _energy_terms(model: Model, k: np.ndarray) -> _Terms | None:
    """Return `energy_round_off_terms` of the parts of a state and a time; None if the model has none."""
    sums = model.energy_round_off_sums()
    if sums is not None:
        table = ElementObservables(sums)
        return lambda state, t: table(np.array([t]), np.concatenate(state)[None], k)[0]
    function = terms_function(model)
    return None if function is None else lambda state, t: np.array(function(*state, t, k)).ravel()


def mean_step(result: Result) -> float:
    """Return the mean step size of a run in seconds; 0 if it has no steps."""
    return float(result.last("t") - result.info.t0) / max(result.statistics.steps, 1)


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
    bound = RoundOffBound(result.system, [name], result.parameter_vector, mean_step(result))
    bound.update(result.t, [getattr(result, part) for part in result.system.view.symbols], _SAMPLES_PER_RUN)
    return bound[name] or float(np.finfo(float).eps)
