"""Derivatives of a finished run: Jacobian-vector products (`jvp`) and vector-Jacobian products (`vjp`)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from livens.engine.stepper import step_inputs
from livens.errors import InputError
from livens.models.base import Model
from livens.results.result import Result
from livens.run.derivatives.gradient import Gradient, record_run
from livens.run.derivatives.initial_state import InitialStateDerivatives, InputTangent
from livens.run.derivatives.tape import Tape
from livens.run.plan import Plan
from livens.types import ArrayLike, FloatArray
from livens.validation import check_array, check_number


def vjp(result: Result, cotangents: Mapping[str, ArrayLike]) -> Gradient:
    """Return the vector-Jacobian product of a run: derivatives by its inputs, given those by its rows.

    Parameters
    ----------
    result : Result
        Run to differentiate.
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
    tape, initial_sensitivity = _recorded(result)
    rows = np.zeros_like(tape.states)
    if not isinstance(cotangents, Mapping):
        raise InputError(f"vjp needs a dict of arrays by variable name, such as {{'q': ...}}, got {cotangents!r}")
    for name, values in cotangents.items():
        slice_ = _state_slice(tape, name)
        expected = rows[:, slice_].shape
        rows[:, slice_] = check_array(f"the derivatives by {name}", values, expected)
    a, g = tape.adjoint(rows)
    return Gradient.from_tangent(result.system, initial_sensitivity.vjp(a, g[2:], g[0]))


def jvp(
    result: Result,
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    *,
    p0: FloatArray | None = None,
    x0: ArrayLike | None = None,
    parameters: Mapping[str, ArrayLike] | None = None,
    h: float | None = None,
) -> dict[str, np.ndarray]:
    """Return the Jacobian-vector product of a run: derivatives of its rows along a direction of its inputs.

    Parameters
    ----------
    result : Result
        Run to differentiate.
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
    tape, initial_sensitivity = _recorded(result)
    initial = dict(q0=q0, v0=v0, p0=p0, x0=x0)
    tangent = input_tangent(result.system, initial_sensitivity, initial, parameters, h)
    dz, dc = initial_sensitivity.jvp(tangent)[None], step_inputs(tangent.h, 0.0, tangent.k)[None]
    tangents = tape.tangents(dz, dc)[:, 0]
    return {name: tangents[:, tape.compiled.layout[name]] for name in result.system.view.symbols}


def input_tangent(
    model: Model,
    initial_sensitivity: InitialStateDerivatives,
    initial: Mapping[str, object],
    parameters: Mapping[str, ArrayLike] | None,
    h: float | None,
) -> InputTangent:
    """Parse a direction of the inputs of a run."""
    initial_tangents = {}
    for name, value in initial.items():
        if value is None:
            continue
        if name not in initial_sensitivity.input_names:
            raise InputError(
                f"the initial values of this run are {' and '.join(initial_sensitivity.input_names)}, not {name}"
            )
        initial_tangents[name] = check_array(f"the change of {name}", value, (len(model.coordinates),))
    changes = {} if parameters is None else parameters
    if not isinstance(changes, Mapping):
        raise InputError(f"parameters must map names to values, got {changes!r}")
    table = model.parameter_table
    dk = np.zeros(table.size)
    for name, value in changes.items():
        entry = table.lookup(name)
        for slice_ in entry.slices:
            dk[slice_] = check_array(f"the change of parameter '{name}'", value, entry.shape).ravel()
    return InputTangent(initial_tangents, dk, 0.0 if h is None else check_number("the change of h", h))


def _state_slice(tape: Tape, name: str) -> slice:
    symbols = tape.compiled.model.view.symbols
    if name not in symbols:
        raise InputError(f"unknown variable '{name}', allowed: {', '.join(symbols)}")
    return tape.compiled.layout[name]


def _recorded(result: Result) -> tuple[Tape, InitialStateDerivatives]:
    """Repeat the run with a tape, cached in the result."""
    cached = result.__dict__.get("_taped")
    if cached is None:
        plan = _plan_of_result(result)
        _, tape, initial_sensitivity = record_run(plan, plan.every, keep=False, guards_checked=True)
        cached = result.__dict__["_taped"] = tape, initial_sensitivity
    recorded: tuple[Tape, InitialStateDerivatives] = cached
    return recorded


def _check_events(result: Result) -> None:
    """Raise an error if an event acted: an action changes the motion, or at least leaves two rows at its time."""
    if np.size(result.record.checkpoint.get("inputs", {}).get("indices", ())):
        raise InputError(
            "inputs, or branches of angles, changed during the run, and derivatives of a finished run need constant "
            "parameters: use livens.value_and_gradient(...)(step, inputs=...) for inputs over time"
        )
    times = np.asarray(result.t)
    repeated_times = times[1:][np.diff(times) == 0.0]
    for event in result.events:
        if event.changes or event.t in repeated_times:
            raise InputError(
                f"the event '{event.name}' changed the motion at t = {event.t:.9g}; derivatives of the event time are "
                "not supported"
            )


def _plan_of_result(result: Result) -> Plan:
    info, model = result.info, result.system
    if result.status != "complete":
        raise InputError(f"only complete runs can be differentiated; the status of this run is '{result.status}'")
    if float(result.last("t")) < info.t_end - 1e-9 * info.h:
        raise InputError("the run was ended by an event; derivatives of the event time are not supported")
    _check_events(result)
    missing = [name for name in model.view.symbols if name not in result.stored]
    if missing:
        raise InputError(f"derivatives need the initial state of the run: store {', '.join(missing)} too")
    plan = Plan.from_run_info(info, model, scheme=result._scheme, redundant="remove" if info.dropped else "error")
    initial_values = {name: np.asarray(getattr(result, name)[0]) for name in result.stored if name in "qvpxy"}
    return Plan.from_arguments(
        model,
        model.initial_values_from(initial_values),
        **{name: getattr(plan, name) for name in ("scheme", "h", "t_end", "t0", "parameters", "every", "redundant")},
        control=plan.control,
        tier=plan.tier,
        is_compatible=True,
    )


Result.attach("vjp", vjp)
Result.attach("jvp", jvp)
