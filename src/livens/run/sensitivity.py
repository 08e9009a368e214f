"""Derivatives of a finished run: Jacobian-vector products (`jvp`) and vector-Jacobian products (`vjp`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from livens.errors import InputError, suggestion
from livens.expressions.numbers import array, number
from livens.models.model import Model
from livens.results.result import Result
from livens.run.departure import Departure, Shift
from livens.run.gradient import Gradient, tape_of
from livens.run.plan import Plan
from livens.run.tape import Tape


def vjp(result: Result, bars: Mapping[str, Any]) -> Gradient:
    """Return the vector-Jacobian product of a run: derivatives by its inputs, given those by its rows.

    Parameters
    ----------
    cotangents : dict of str to array_like
        Derivatives of a scalar by the variables of the run (``q v p x``), each of the shape of the variable.

    Returns
    -------
    Gradient
        Derivatives by all initial values, parameters and h.

    Raises
    ------
    InputError
        If a name or shape is wrong, or the run cannot be differentiated.

    Notes
    -----
    One adjoint sweep yields all derivatives. The steps are recomputed from checkpoints, so that runs loaded from files
    can be differentiated too.

    Examples
    --------
    >>> import livens as lv
    >>> import numpy as np
    >>> run = lv.prepare(lv.problems.load("simple-pendulum"), h=0.01).run(t_end=0.5)
    >>> weights = np.zeros_like(run.q)
    >>> weights[-1, 0] = 1.0  # the x at the end
    >>> round(run.vjp({"q": weights}).parameters["g"], 4)
    0.0996
    """
    tape, departure = _taped(result)
    rows = np.zeros_like(tape.states)
    if not isinstance(bars, Mapping):
        raise InputError(f"vjp needs a dict of arrays by variable name, such as {{'q': ...}}, got {bars!r}")
    for name, values in bars.items():
        place = _place(tape, name)
        expected = rows[:, place].shape
        rows[:, place] = array(f"the derivatives by {name}", values, expected)
    a, g = tape.back(rows)
    return Gradient.of(result.system, departure.back(a, g[2:], g[0]))


def jvp(
    result: Result,
    q0: Any = None,
    v0: Any = None,
    *,
    p0: Any = None,
    x0: Any = None,
    parameters: Mapping[str, Any] | None = None,
    h: Any = None,
) -> dict[str, np.ndarray]:
    """Return the Jacobian-vector product of a run: derivatives of its rows along a direction of its inputs.

    Parameters
    ----------
    q0, v0, p0, x0 : array_like of shape (n,), optional
        Tangents of the initial values, which stay on the constraints.
    parameters : dict of str to array_like, optional
        Tangents of the parameters, by name.
    h : float, optional
        Tangent of the step size.

    Returns
    -------
    dict of str to ndarray
        Tangents of the variables of the run, each of the shape of the variable.

    Raises
    ------
    InputError
        If a name or shape is wrong, or the run cannot be differentiated.

    Notes
    -----
    Use `jvp` for few directions and many outputs, `vjp` for many parameters and one output.

    Examples
    --------
    >>> import livens as lv
    >>> run = lv.prepare(lv.problems.load("simple-pendulum"), h=0.01).run(t_end=0.5)
    >>> round(float(run.jvp(parameters={"g": 1.0})["q"][-1, 0]), 4)
    0.0996
    """
    tape, departure = _taped(result)
    given = dict(q0=q0, v0=v0, p0=p0, x0=x0)
    shift = direction(result.system, departure, given, parameters, h)
    dz, dc = departure.forth(shift)[None], np.concatenate([[shift.h, 0.0], shift.k])[None]
    moved = tape.forth(dz, dc)[:, 0]
    return {name: moved[:, tape.compiled.layout[name]] for name in result.system.view.symbols}


def direction(
    model: Model, departure: Departure, start: Mapping[str, Any], parameters: Mapping[str, Any] | None, h: Any
) -> Shift:
    """Parse a direction of the inputs of a run."""
    moves = {}
    for name, value in start.items():
        if value is None:
            continue
        if name not in departure.names:
            raise InputError(f"the initial values of this run are {' and '.join(departure.names)}, not {name}")
        moves[name] = array(f"the change of {name}", value, (len(model.coordinates),))
    changes = {} if parameters is None else parameters
    if not isinstance(changes, Mapping):
        raise InputError(f"parameters must map names to values, got {changes!r}")
    table = model.parameter_table
    dk = np.zeros(table.size)
    for name, value in changes.items():
        entry = table.entries.get(name)
        if entry is None:
            raise InputError(f"unknown parameter '{name}'{suggestion(str(name), table.entries)}")
        for place in entry.places:
            dk[place] = array(f"the change of parameter '{name}'", value, entry.shape).ravel()
    return Shift(moves, dk, 0.0 if h is None else number("the change of h", h))


def _place(tape: Tape, name: Any) -> slice:
    symbols = tape.compiled.model.view.symbols
    if name not in symbols:
        raise InputError(f"unknown variable '{name}', allowed: {', '.join(symbols)}")
    return tape.compiled.layout[name]


def _taped(result: Result) -> tuple[Tape, Departure]:
    """Repeat the run with a tape, cached in the result."""
    known = result.__dict__.get("_taped")
    if known is None:
        plan = _plan(result)
        _, tape, departure = tape_of(plan, plan.every, keep=False, watched=True)
        known = result.__dict__["_taped"] = tape, departure
    found: tuple[Tape, Departure] = known
    return found


def _check_events(result: Result) -> None:
    """Raise an error if an event acted: an action changes the motion, or at least leaves two rows at its time."""
    times = np.asarray(result.t)
    twice = times[1:][np.diff(times) == 0.0]
    for event in result.events:
        if event.changes or event.t in twice:
            raise InputError(
                f"the event '{event.name}' changed the motion at t = {event.t:.9g}; derivatives of the event time are "
                "not supported"
            )


def _plan(result: Result) -> Plan:
    facts, model = result.facts, result.system
    if result.status != "complete":
        raise InputError(f"only complete runs can be differentiated; the status of this run is '{result.status}'")
    if float(result.last("t")) < facts.t_end - 1e-9 * facts.h:
        raise InputError("the run was ended by an event; derivatives of the event time are not supported")
    _check_events(result)
    missing = [name for name in model.view.symbols if name not in result.stored]
    if missing:
        raise InputError(f"derivatives need the initial state of the run: store {', '.join(missing)} too")
    plan = Plan.from_facts(facts, model, scheme=result._scheme, redundant="remove" if facts.dropped else "error")
    first = {name: np.asarray(getattr(result, name)[0]) for name in result.stored if name in "qvpxy"}
    return Plan.of(
        model,
        model.start_from(first),
        **{name: getattr(plan, name) for name in ("scheme", "h", "t_end", "t0", "parameters", "every", "redundant")},
        control=plan.control,
        tier=plan.tier,
        fits=True,
    )


Result.attach("vjp", vjp)
Result.attach("jvp", jvp)
