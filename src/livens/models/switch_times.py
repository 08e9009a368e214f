"""Switch times of a model: times at which its equations are not smooth, such as ``where(t < 2, ...)``."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from livens.expressions.graph.switches import sign_changes, switching_functions

if TYPE_CHECKING:
    from livens.models.base import Model


#: Distance of equal switch times, relative to the interval.
_SAME_TIME = 1e-12


def switch_times(model: Model, k: np.ndarray, begin: float, end: float) -> np.ndarray:
    """Return the switch times of a model between two times; conditions that depend on the state are not included.

    Parameters
    ----------
    model : Model
        Model whose equations are searched for comparisons, minima, absolute values and floors of time.
    k : ndarray
        Parameters of the model.
    begin, end : float
        Interval in seconds.

    Returns
    -------
    ndarray
        Switch times in ascending order, in seconds.

    Examples
    --------
    >>> import livens as lv
    >>> kick = lv.System("x", kinetic=lambda v: v @ v / 2, forces=lambda t: [lv.math.where(t < 1.5, 2.0, 0.0)])
    >>> switch_times(kick, kick.parameter_vector(), 0.0, 10.0)
    array([1.5])
    """
    if not _functions_of_time(model):
        return np.zeros(0)
    values = np.ascontiguousarray(k, dtype=float).ravel()
    return _search_times(model, values.tobytes(), float(begin), float(end)).copy()


@functools.lru_cache(maxsize=256)
def _search_times(model: object, parameters: bytes, begin: float, end: float) -> np.ndarray:
    """Search for the switch times; equal runs are searched once."""
    values, time_blocks = np.frombuffer(parameters), [np.zeros(0)]
    for function, dofs in _functions_of_time(model):
        numbers = values if dofs is None else values[list(dofs)]
        t = ca.SX.sym("t")
        time_blocks.append(sign_changes(ca.Function("s", [t], [function(t, numbers)]), begin, end))
    times = np.unique(np.concatenate(time_blocks))
    same = _SAME_TIME * (end - begin)
    times = times[(times > begin + same) & (times < end - same)]
    return times[np.diff(times, prepend=-np.inf) > same]


@functools.lru_cache(maxsize=64)
def _functions_of_time(model: Any) -> tuple[tuple[ca.Function, tuple[int, ...] | None], ...]:
    """Return the switching functions of time and parameters, each with the indices of its parameters."""
    switching: list[tuple[ca.Function, tuple[int, ...] | None]] = []
    of_type: dict[Any, list[ca.Function]] = {}
    if hasattr(model, "element_types"):
        for element_type, dofs in zip(model.element_types, model.element_parameters, strict=True):
            if element_type not in of_type:
                e = element_type
                of_type[e] = _of_time([e.q, e.v], e.t, e.k, forces_of_element(e))
            switching += [(function, tuple(dofs)) for function in of_type[element_type]]
    elif hasattr(model, "descriptor"):
        d = model.descriptor
        switching = [(function, None) for function in _of_time([d.x, d.xdot], d.t, d.k, d.residual)]
    elif hasattr(model, "momentum_rate"):
        state = [model.q, model.p]
        switching = [(function, None) for function in _of_time(state, model.t, model.k, rates_of_phase_space(model))]
    return tuple(switching)


def _of_time(state: list[Any], t: Any, k: Any, expression: Any) -> list[ca.Function]:
    if not ca.depends_on(expression, t) or not is_closed(state, t, k, expression):
        return []
    switching = switching_functions([*state, t, k], expression)
    of_time = [s for s in switching if ca.depends_on(s, t) and not ca.depends_on(s, ca.vertcat(*state))]
    return [ca.Function("switch", [t, k], [s]) for s in of_time]


def is_closed(state: list[Any], t: Any, k: Any, expression: Any) -> bool:
    """Return True if an expression contains no other symbols."""
    return all(any(ca.depends_on(x, s) for x in (*state, t, k)) for s in ca.symvar(ca.densify(expression)))


def forces_of_element(element_type: Any) -> Any:
    """Return the expressions of an element that may be switched: forces, gradients of its functions, constraints."""
    e = element_type
    return ca.vertcat(e.F, ca.gradient(e.V, e.q), ca.gradient(e.R, e.v), e.g)


def rates_of_phase_space(model: Any) -> Any:
    """Return the rates of positions and momenta of a Hamiltonian model."""
    return ca.vertcat(model.velocity, model.momentum_rate)
