"""Switches of the state of a model: functions of the state whose sign changes make its equations not smooth."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import casadi as ca
import numpy as np

from livens.expressions.graph.switches import switching_functions
from livens.models.switch_times import forces_of_element, is_closed, rates_of_phase_space


class StateSwitches:
    """Switching functions of a model that depend on its state, such as that of ``where(q[0] < 0, ...)``.

    Parameters
    ----------
    model : Model
        Model whose forces, potentials, dissipation functions and constraints are searched.

    Examples
    --------
    >>> import livens as lv
    >>> ball = lv.System("z", kinetic=lambda v: v @ v / 2, forces=lambda q: [lv.math.where(q[0] < 0.2, 9.0, 0.0)])
    >>> switches = StateSwitches(ball)
    >>> switches.values(np.zeros(2), {"q": np.array([[0.1], [0.5]]), "v": np.zeros((2, 1))}, ball.parameter_vector())
    array([[-0.1,  0.3]])
    """

    def __init__(self, model: Any) -> None:
        self.names, self._functions, self._forces = _functions_of_state(model)

    def __len__(self) -> int:
        return len(self._functions)

    def expressions(self, symbols: Mapping[str, object], t: object, k: object) -> Any:
        """Return the switching functions as a column of expressions.

        Parameters
        ----------
        symbols : mapping of str to casadi.SX
            Symbols of the variables `names` of the state.
        t, k : casadi.SX
            Symbols of the time and of the parameters.

        Returns
        -------
        casadi.SX
            Column of switching functions.
        """
        return self._column(self._functions, symbols, t, k)

    def forces(self, symbols: Mapping[str, object], t: object, k: object) -> Any:
        """Return the forces or rates that are switched as a column of expressions.

        Parameters
        ----------
        symbols : mapping of str to casadi.SX
            Symbols of the variables `names` of the state.
        t, k : casadi.SX
            Symbols of the time and of the parameters.

        Returns
        -------
        casadi.SX
            Column of forces, gradients of potentials and constraints, or of rates.
        """
        return self._column(self._forces, symbols, t, k)

    def _column(self, functions: tuple[_StateFunction, ...], symbols: Mapping[str, Any], t: Any, k: Any) -> Any:
        rows = []
        for function, dofs, parameters in functions:
            variables = [symbols[name] if dofs is None else symbols[name][list(dofs)] for name in self.names]
            rows.append(function(*variables, t, k if parameters is None else k[list(parameters)]))
        return ca.vertcat(*rows)

    def values(self, t: np.ndarray, state: Mapping[str, np.ndarray], k: np.ndarray) -> np.ndarray:
        """Evaluate the switching functions.

        Parameters
        ----------
        t : ndarray, shape (n_rows,)
            Times in seconds.
        state : mapping of str to ndarray, shape (n_rows, n)
            Variables `names` of the state.
        k : ndarray
            Parameters of the model.

        Returns
        -------
        ndarray, shape (n_functions, n_rows)
            Values; the equations are smooth where no sign changes.
        """
        rows, times = [], np.asarray(t, dtype=float)[None, :]
        for function, dofs, parameters in self._functions:
            variables = [state[name].T if dofs is None else state[name].T[list(dofs)] for name in self.names]
            numbers = np.asarray(k if parameters is None else np.asarray(k)[list(parameters)])
            rows.append(np.array(function(*variables, times, np.tile(numbers[:, None], times.shape[1]))).ravel())
        return np.array(rows).reshape(len(rows), times.shape[1])


_StateFunction = tuple[ca.Function, tuple[int, ...] | None, tuple[int, ...] | None]


@functools.lru_cache(maxsize=64)
def _functions_of_state(model: Any) -> tuple[tuple[str, ...], tuple[_StateFunction, ...], tuple[_StateFunction, ...]]:
    """Return the names of the state variables, the switching functions, and the forces that contain them.

    Every function comes with its coordinates and parameters.
    """
    if hasattr(model, "element_types"):
        of_type: dict[Any, tuple[list[ca.Function], ca.Function]] = {}
        functions, forces = list[_StateFunction](), list[_StateFunction]()
        for e, dofs, parameters in zip(model.element_types, model.element_dofs, model.element_parameters, strict=True):
            if e not in of_type:
                of_type[e] = _of_state([e.q, e.v], e.t, e.k, forces_of_element(e))
            switching, force = of_type[e]
            functions += [(function, tuple(dofs), tuple(parameters)) for function in switching]
            forces += [(force, tuple(dofs), tuple(parameters))] if switching else []
        return ("q", "v"), tuple(functions), tuple(forces)
    if hasattr(model, "descriptor") and model.error_norm_variables == ("x",) and not model.algebraic_names:
        d = model.descriptor
        of_rates, residual = _of_state([d.x, d.xdot], d.t, d.k, d.residual)
        at_rest = [d.x, ca.DM.zeros(*d.xdot.shape), d.t, d.k]
        switching = [f for f in of_rates if not f.nnz_in(1) or _ignores(f, 1)]
        if not switching:
            return ("x",), (), ()
        columns = [residual(*at_rest)]
        if ca.depends_on(ca.jacobian(d.residual, d.xdot), d.x):  # a mass matrix may be switched as well
            columns.append(residual(d.x, ca.DM.ones(*d.xdot.shape), d.t, d.k))
        without_rates = [ca.Function("switch", [d.x, d.t, d.k], [f(*at_rest)]) for f in switching]
        force = ca.Function("forces", [d.x, d.t, d.k], [ca.vertcat(*columns)])
        return ("x",), tuple((function, None, None) for function in without_rates), ((force, None, None),)
    if hasattr(model, "momentum_rate"):
        switching, force = _of_state([model.q, model.p], model.t, model.k, rates_of_phase_space(model))
        functions_of_phase = tuple((function, None, None) for function in switching)
        return ("q", "p"), functions_of_phase, ((force, None, None),) if switching else ()
    return (), (), ()


def _ignores(function: ca.Function, i: int) -> bool:
    return bool(function.jac_sparsity(0, i).nnz() == 0)


def _of_state(state: list[Any], t: Any, k: Any, expression: Any) -> tuple[list[ca.Function], ca.Function]:
    """Return the switching functions that depend on the state, and the expression as a function."""
    inputs = [*state, t, k]
    if not is_closed(state, t, k, expression):
        return [], ca.Function()
    switching = switching_functions(inputs, expression)
    of_state = [s for s in switching if ca.depends_on(s, ca.vertcat(*state))]
    unique = [s for i, s in enumerate(of_state) if not any(ca.is_equal(s, other, 3) for other in of_state[:i])]
    return [ca.Function("switch", inputs, [s]) for s in unique], ca.Function("forces", inputs, [expression])
