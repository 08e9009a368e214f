"""Hessian of a loss by forward-over-reverse differentiation (tangent of the adjoint sweep)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from livens.errors import InputError, suggestion
from livens.models.model import Model
from livens.run.departure import Departure, Shift
from livens.run.gradient import Differentiated, Gradient
from livens.run.prepare import Prepared
from livens.run.several import plan_of


@dataclass(frozen=True)
class Hessian:
    """Second derivatives of a loss.

    Parameters
    ----------
    names : tuple of str
        Names of rows and columns: ``g``, ``q0[1]``, ``h``.
    matrix : ndarray of shape (n, n)
        Second derivatives, symmetric up to round-off.
    """

    names: tuple[str, ...]
    matrix: np.ndarray


def hessian(
    loss: Callable[..., Any],
    by: str | Sequence[str],
    *,
    every: int | None = None,
    data: Any = None,
    keep: str = "all",
) -> Callable[..., tuple[float, Gradient, Hessian]]:
    """Return a function that computes a loss of a run, its gradient and its second derivatives.

    Parameters
    ----------
    loss : callable
        Function of any of ``q, v, p, x, t, k, d`` that returns a scalar, see `livens.value_and_gradient`.
    by : str or sequence of str
        Inputs to differentiate by twice: names of parameters, ``q0``, ``v0``, ``p0``, ``x0``, ``h``, or single entries
        such as ``v0[1]``.
    every : int, optional
        Sum the loss over every `every`-th step. Default: the last state only.
    data : array_like, optional
        Data with one row per observed state, passed to the loss as ``d``.
    keep : {"all", "checkpoints"}, default "all"
        Store all states for the adjoint sweep, or checkpoints from which they are recomputed.

    Returns
    -------
    callable
        Function of a prepared step (see `livens.prepare`) and of the arguments of its `run`. It returns the value, a
        `Gradient` and a `Hessian`.

    Raises
    ------
    InputError
        If `by` is not a name or a sequence of names.

    Notes
    -----
    Each column costs about as much as two gradients and is exact for the steps that were taken.

    Examples
    --------
    >>> import livens as lv
    >>> oscillator = lv.System(
    ...     "x", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q, k: k.c * q[0] ** 2 / 2, parameters=dict(c=1.0)
    ... )
    >>> step = lv.prepare(oscillator, scheme="gauss-2", h=0.01)
    >>> value, by, second = lv.hessian(lambda q: q[0], by="c")(step, q0=[1.0], v0=[0.0], t_end=1.0)
    >>> round(float(second.matrix[0, 0]), 6)  # sin(1)/4 - cos(1)/4
    0.075292
    """
    task, names = Differentiated(loss, every, data, keep), _listed(by)

    def evaluated(
        step: Prepared,
        q0: Any = None,
        v0: Any = None,
        *,
        p0: Any = None,
        x0: Any = None,
        parameters: Mapping[str, Any] | None = None,
        h: float | None = None,
        t_end: float | None = None,
        t0: float | None = None,
        project: bool | None = None,
    ) -> tuple[float, Gradient, Hessian]:
        plan = plan_of(
            step, dict(q0=q0, v0=v0, p0=p0, x0=x0), parameters=parameters, h=h, t_end=t_end, t0=t0, project=project
        )
        tape, departure, cost = task.run(plan)
        value, slope = cost(tape)
        columns = directions(plan.model, departure, names)
        ways = [departure.forth(shift) for shift in columns.values()]
        moves = [np.concatenate([[shift.h, 0.0], shift.k]) for shift in columns.values()]
        states = tape.forth(np.array(ways), np.array(moves))
        first, matrix = None, np.empty((len(columns), len(columns)))
        for i, shift in enumerate(columns.values()):
            change = cost.second(tape, states[:, i], shift.k, shift.h)
            a, g, da, dg = tape.second(slope.bars, change.bars, ways[i], moves[i])
            by_h = g[0] + slope.h, dg[0] + change.h
            first, second = departure.second(a, da, g[2:] + slope.k, dg[2:] + change.k, by_h, shift)
            matrix[:, i] = [_product(second, other) for other in columns.values()]
        assert first is not None
        return value, Gradient.of(plan.model, first), Hessian(tuple(columns), matrix)

    return evaluated


def _listed(by: str | Sequence[str]) -> tuple[str, ...]:
    listed = [by] if isinstance(by, str) else by
    if not isinstance(listed, Sequence) or not listed or not all(isinstance(name, str) and name for name in listed):
        raise InputError(f"by must be names of parameters or initial values, got {by!r}")
    return tuple(listed)


def directions(model: Model, departure: Departure, names: Sequence[str]) -> dict[str, Shift]:
    """Return a unit tangent for every scalar input: ``v0`` selects all its entries, ``v0[1]`` one of them."""
    found = dict[str, Shift]()
    for given in names:
        name, _, entry = given.partition("[")
        columns = _columns(model, departure, name, given)
        if entry:
            if given not in columns:
                raise InputError(f"'{name}' has {len(columns)} entries, there is no '{given}'")
            columns = {given: columns[given]}
        found |= columns
    return found


def _columns(model: Model, departure: Departure, name: str, given: str) -> dict[str, Shift]:
    table, found = model.parameter_table, dict[str, Shift]()
    nothing = np.zeros(table.size)
    if name in departure.names:
        size = len(model.coordinates)
        return {f"{name}[{i}]": Shift({name: np.eye(size)[i]}, nothing) for i in range(size)}
    if name == "h":
        return {"h": Shift({}, nothing, 1.0)}
    if name not in table.entries:
        known = [*table.entries, *departure.names, "h"]
        raise InputError(f"cannot differentiate by '{given}'{suggestion(name, known)}")
    entry = table.entries[name]
    for i in range(int(np.prod(entry.shape, dtype=int))):
        dk = nothing.copy()
        for place in entry.places:
            dk[place.start + i] = 1.0
        found[name if entry.shape == () else f"{name}[{i}]"] = Shift({}, dk)
    return found


def _product(slope: Shift, along: Shift) -> float:
    of_start = sum(float(slope.start[name] @ move) for name, move in along.start.items())
    return of_start + float(slope.k @ along.k) + slope.h * along.h
